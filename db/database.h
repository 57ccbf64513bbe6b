/* Opens a SQLite file, if it is warploom's, and migrates it to the current schema. */
#pragma once

#include "core/base/text.h"
#include "db/schema.h"
#include "db/sqlite_util.h"

/* Opens `path` with the schema's settings. For writing: creates the file and the folders above it if they are missing,
 * and migrates an older schema. For reading: changes nothing, except that it rolls back an unfinished write; an older
 * schema is read as it is from schema->oldest_read on. A file that is not warploom's is never written, and nothing is
 * ever deleted. WLM_ERR_NOT_FOUND not writable and there is no such file, or an empty one WLM_ERR_DATABASE not a
 * database, one of others, or damaged WLM_ERR_DATABASE_VERSION found and expected version in the detail text WLM_ERR_IO
 * no permission, full, busy for too long */
wlm_status wlmi_database_open(const char *path, wlmi_store_mode mode, const wlmi_schema *schema, sqlite3 **db);

/* An empty database in memory. */
wlm_status wlmi_database_open_memory(const wlmi_schema *schema, sqlite3 **db);

/* Reads the first bytes of a file of any kind, 0 behind its end. It opens the file as SQLite does, so that the locks of
 * this process's connections to it stay. WLM_ERR_DATABASE if it is no ordinary file; WLM_ERR_IO. */
wlm_status wlmi_database_peek(const char *path, char *bytes, int size);

/* Appends the objects that the schema of an open file of this version has in addition, lacks, or defines differently,
 * each with its name. Appends nothing if the schema is correct. */
wlm_status wlmi_database_compare(sqlite3 *db, const wlmi_schema *schema, int64_t version, wlmi_text *faults);

/* The error for a file in which not even WLMI_STORE_SALVAGE finds anything. */
wlm_status wlmi_database_hopeless(const char *path);

/* Empties a damaged file of this schema under SQLite's locks, so other connections can continue. Fails without touching
 * the file if its header does not have the schema's application id. */
wlm_status wlmi_database_reset(const char *path, const wlmi_schema *schema);
