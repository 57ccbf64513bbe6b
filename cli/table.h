/* A table that is filled once and written as aligned text or as JSON. */
#pragma once

#include "core/base/text.h"

enum { WLMI_TABLE_COLUMNS = 12, WLMI_TABLE_NAMES = 256 };

typedef struct wlmi_table {
  char names[WLMI_TABLE_NAMES]; /* of the columns, each with a NUL */
  struct wlmi_table_column {
    int key, title; /* where they begin in `names` */
  } columns[WLMI_TABLE_COLUMNS];
  int column_count;
  struct wlmi_table_cell *cells;
  int64_t count, capacity;
  int failed; /* out of memory */
} wlmi_table;

/* columns: at most WLMI_TABLE_COLUMNS, as in "matrix,n,us=time": the keys in JSON, with the titles for people where
 * these are others. "key=" is in JSON only, "=title" for people only. */
void wlmi_table_begin(wlmi_table *table, const char *columns);
/* Cells are added row by row. `shown` is a number in the text output; JSON has it in full precision. */
void wlmi_table_text(wlmi_table *table, const char *text); /* NULL = null, blank */
/* format: of one double, or "" for a blank cell. The text output has "-" for one that is not finite. */
void wlmi_table_real(wlmi_table *table, const char *format, double value);
void wlmi_table_flag(wlmi_table *table, int value);
/* Several cells by their formats, divided by blanks: "%s" a text, "%d" an int, "%jd" an int64_t, others a double. */
void wlmi_table_add(wlmi_table *table, const char *formats, ...) __attribute__((format(printf, 2, 3)));

void wlmi_table_print(const wlmi_table *table, wlmi_text *out); /* titles, then rows; numbers to the right */
void wlmi_table_json(const wlmi_table *table, const char *key, wlmi_text *out); /* an array of objects */
void wlmi_table_release(wlmi_table *table);
