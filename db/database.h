/* Opening a SQLite file only if it is warploom's own, and bringing it to the current schema. */
#ifndef WLM_DB_DATABASE_H
#define WLM_DB_DATABASE_H

#include "common/text.h"
#include "db/schema.h"
#include "db/sqlite_util.h"

/* Opens `path` with the schema's settings. To write: makes the file and the folders above it where they are missing
 * and migrates an older schema forwards; otherwise nothing is changed but for the rollback of a write that
 * was cut short, and an older schema is taken as it is where it can be read (schema->oldest_read). A file of others is
 * never written to, nothing is ever deleted. WLM_ERR_NOT_FOUND         not writable and there is no such file, or an
 * empty one WLM_ERR_DATABASE          not a database, one of others, or damaged WLM_ERR_DATABASE_VERSION  found and
 * expected version in the detail text WLM_ERR_IO                no permission, full, busy for too long */
typedef enum wlmi_database_mode {
  WLM_DATABASE_READ,
  WLM_DATABASE_WRITE,
  WLM_DATABASE_READ_SHIPPED, /* whoever may write to it may also replace the library: its owner does not matter */
  WLM_DATABASE_SALVAGE       /* a reader of whatever is left, also of a file that was cut off */
} wlmi_database_mode;
wlm_status wlmi_database_open(const char *path, wlmi_database_mode mode, const wlmi_schema *schema, sqlite3 **db);

/* Appends what the schema of an open file of this version has, lacks or has otherwise than warploom makes it, each
 * object with its name; nothing where it is as it should be. */
wlm_status wlmi_database_compare(sqlite3 *db, const wlmi_schema *schema, int64_t version, wlmi_text *faults);

/* What is to be said where not even WLM_DATABASE_SALVAGE finds anything. */
wlm_status wlmi_database_hopeless(const char *path);

/* Empties a damaged file of this schema under SQLite's locks, so that others who have it open go on.
 * Fails without touching it where the file's header does not carry the schema's application id. */
wlm_status wlmi_database_reset(const char *path, const wlmi_schema *schema);

#endif
