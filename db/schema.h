/* The schemas of the two databases as SQL text, and the ways to open them. */
#pragma once

typedef enum wlmi_store_mode {
  WLMI_STORE_READ,         /* waits half a second for the lock of another process */
  WLMI_STORE_READ_PATIENT, /* waits as a writer does: up to a minute, if the schema is worth it */
  WLMI_STORE_READ_SHIPPED, /* the owner is not checked: a user who can write it could also replace the library */
  WLMI_STORE_WRITE,        /* creates the file and its folders if missing; migrates an older schema */
  WLMI_STORE_SALVAGE       /* reads what is left of a damaged file, also of one that was cut off */
} wlmi_store_mode;

typedef struct wlmi_schema {
  const char *what;         /* for messages: "a tuning database" */
  int application_id;       /* bytes 68 to 71 of the file, which identify the kind of database */
  int version;              /* PRAGMA user_version after the last step */
  const char *const *steps; /* steps[v] migrates version v to v + 1 and sets user_version; steps[0] creates the tables
                             */
  const char *mend;         /* advice for a file with another schema */
  const char *settings;     /* of each connection */
  int is_waited_for; /* a writer waits up to a minute for the locks of others, otherwise as shortly as a reader */
  int oldest_read;   /* a reader accepts files from this version on; 0 = only of the last version */
} wlmi_schema;

extern const wlmi_schema wlmi_schema_tuned;   /* measurements: never deleted without being asked */
extern const wlmi_schema wlmi_schema_kernels; /* compiled kernels: may be deleted at any time */
