/* Rows and columns for people (aligned) and for programs (JSON): filled once, written either way. */
#ifndef WLM_CLI_TABLE_H
#define WLM_CLI_TABLE_H

#include "common/text.h"

enum { WLM_TABLE_COLUMNS = 12 };

typedef struct wlm_table_column {
  const char *key;   /* in JSON; NULL = for people only */
  const char *title; /* for people; NULL = in JSON only */
} wlm_table_column;

typedef struct wlm_table {
  const wlm_table_column *columns;
  int column_count;
  struct wlm_table_cell *cells;
  int64_t count, capacity;
  int failed; /* out of memory */
} wlm_table;

void wlm_table_begin(wlm_table *table, const wlm_table_column *columns, int column_count);
/* Cells follow each other, row by row. `shown` is what people see of a number, JSON has it whole. */
void wlm_table_text(wlm_table *table, const char *text); /* NULL = null, blank */
void wlm_table_integer(wlm_table *table, int64_t value);
void wlm_table_real(wlm_table *table, const char *format, double value); /* format of one double */
void wlm_table_flag(wlm_table *table, int value);

void wlm_table_print(const wlm_table *table, wlm_text *out); /* titles, then rows; numbers to the right */
void wlm_table_json(const wlm_table *table, wlm_text *out);  /* an array of objects */
void wlm_table_release(wlm_table *table);

#endif
