/* The parts of a store, only for the files of db/. */
#pragma once

#include "db/columns.h"
#include "db/database.h"
#include "db/store.h"

struct wlm_store {
  sqlite3 *db;
  sqlite3_stmt *insert[WLMI_TABLE_COUNT]; /* NULL when opened for reading */
  sqlite3_stmt *select;                   /* ?1 is a device class or NULL */
  int whole_only; /* wlmi_store_read_rows skips damaged rows and ends without an error where the file cannot be read */
};

/* Opens a damaged store for reading what is left; WLM_ERR_DATABASE if nothing is. */
wlm_status wlmi_store_open_damaged(const char *path, wlm_store **store);

/* Columns of a selected row, the last one of which begins the fields of WLMI_OF_ALL. */
enum {
  WLMI_COLUMN_ID,
  WLMI_COLUMN_DEVICE,
  WLMI_COLUMN_MATRIX,
  WLMI_COLUMN_VARIANT,
  WLMI_COLUMN_CLASS,
  WLMI_COLUMN_FIELDS
};
/* The statement that selects the measurement with the id ?1. */
wlm_status wlmi_store_prepare_one(const wlm_store *store, sqlite3_stmt **statement);
/* Adds one record within the caller's transaction. *added grows by 1 if it was not there before. */
wlm_status wlmi_store_put_one(wlm_store *store, const wlmi_measurement_record *record, int64_t *added);
/* WLM_ERR_INVALID_ARGUMENT for a store that was opened for reading. */
wlm_status wlmi_store_writable(const wlm_store *store);
const char *wlmi_store_path(const wlm_store *store);
/* WLM_ERR_DATABASE, with what to do. */
wlm_status wlmi_store_damaged(const wlm_store *store, const char *measurement);

/* How to read the rows of a statement, whose ?1 is a device class or NULL, to a list. */
typedef struct wlmi_row_reader {
  const wlmi_query *query;
  const char *what; /* for messages */
  size_t size;      /* of an element */
  /* WLM_ERR_DATABASE if the row is damaged. */
  wlm_status (*read)(const wlm_store *store, sqlite3_stmt *row, void *element);
  void (*release)(void *element);
} wlmi_row_reader;
wlm_status wlmi_store_read_rows(const wlm_store *store, const wlmi_row_reader *reader, const char *device_class,
                                void **list, int64_t *count);

/* Adds the pins and the recorded problems of another store within the caller's transaction, as wlmi_store_add does. */
wlm_status wlmi_store_copy_rest(wlm_store *from, wlm_store *to, wlmi_text *conflicts);
/* Adds one within the caller's transaction. */
wlm_status wlmi_store_record_one(wlm_store *store, const wlmi_recorded *recorded);
