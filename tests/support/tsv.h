/* Tables of tab-separated values with a line of column names. Include after cmocka. */
#pragma once

typedef struct tsv_table {
  char *data;   /* the text, with separators replaced by NUL */
  char **field; /* (rows + 1) * columns fields; the first `columns` are the column names */
  int rows, columns;
} tsv_table;

int tsv_read(const char *path, tsv_table *table); /* 0 if the file does not exist */
void tsv_free(tsv_table *table);
const char *tsv_text(const tsv_table *table, int row,
                     const char *column); /* fails the test if there is no such column */
long long tsv_int(const tsv_table *table, int row, const char *column);
double tsv_double(const tsv_table *table, int row, const char *column);
