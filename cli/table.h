/* A table that is filled once and written as aligned text or as JSON. */
#pragma once

#include "core/base/text.h"

enum { WLM_TABLE_COLUMNS = 12 };

typedef struct wlmi_table_column {
  const char *key;   /* in JSON; NULL = for people only */
  const char *title; /* for people; NULL = in JSON only */
} wlmi_table_column;

typedef struct wlmi_table {
  const wlmi_table_column *columns;
  int column_count;
  struct wlmi_table_cell *cells;
  int64_t count, capacity;
  int failed; /* out of memory */
} wlmi_table;

void wlmi_table_begin(wlmi_table *table, const wlmi_table_column *columns, int column_count);
/* Cells are added row by row. `shown` is a number in the text output; JSON has it in full precision. */
void wlmi_table_text(wlmi_table *table, const char *text); /* NULL = null, blank */
void wlmi_table_integer(wlmi_table *table, int64_t value);
void wlmi_table_real(wlmi_table *table, const char *format, double value); /* format of one double */
void wlmi_table_flag(wlmi_table *table, int value);

void wlmi_table_print(const wlmi_table *table, wlmi_text *out); /* titles, then rows; numbers to the right */
void wlmi_table_json(const wlmi_table *table, const char *key, wlmi_text *out); /* an array of objects */
void wlmi_table_release(wlmi_table *table);
