/* The two databases as SQL text, and what every warploom database has in common. */
#ifndef WLM_DB_SCHEMA_H
#define WLM_DB_SCHEMA_H

typedef struct wlmi_schema {
  const char *what;         /* for messages: "a tuning database" */
  int application_id;       /* in bytes 68 to 71 of the file: whose it is */
  int version;              /* PRAGMA user_version after the last step */
  const char *const *steps; /* steps[v] leads from version v to v + 1 and says so; steps[0] makes a new file ours */
  const char *mend;         /* what to do where the schema is not ours */
  const char *settings;     /* of each connection */
  int busy_ms;              /* how long to wait for other processes */
  int holds_code;           /* what a file has is run: its folder, too, must be safe from other users */
  int oldest_read;          /* a reader takes files from this version on; 0 = of the last version alone */
} wlmi_schema;

extern const wlmi_schema wlmi_schema_tuned;   /* measurements: precious */
extern const wlmi_schema wlmi_schema_kernels; /* compiled kernels: may be deleted at any time */

#endif
