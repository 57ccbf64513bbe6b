#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/asserts.h"
#include "support/folder.h"
#include "support/tsv.h"

static int count_char(const char *text, char c) {
  int count = 0;
  for (; *text; text++) count += *text == c;
  return count;
}

int tsv_read(const char *path, tsv_table *table) {
  *table = (tsv_table){0};
  if (access(path, R_OK)) return 0;
  size_t size;
  unsigned char *bytes = read_whole(path, &size);
  table->data = malloc(size + 1);
  memcpy(table->data, bytes, size);
  table->data[size] = 0;
  free(bytes);
  int lines = count_char(table->data, '\n');
  table->columns = 1;
  for (const char *c = table->data; *c && *c != '\n'; c++) table->columns += *c == '\t';
  table->rows = lines - 1;
  table->field = calloc((size_t)(lines * table->columns), sizeof *table->field);
  char *line = table->data;
  for (int l = 0; l < lines; l++) {
    char *next = strchr(line, '\n');
    *next = 0;
    for (int c = 0; c < table->columns; c++) {
      table->field[l * table->columns + c] = line;
      char *tab = strchr(line, '\t');
      if (!tab) {
        while (++c < table->columns) table->field[l * table->columns + c] = line + strlen(line);
        break;
      }
      *tab = 0;
      line = tab + 1;
    }
    line = next + 1;
  }
  return 1;
}

void tsv_free(tsv_table *table) {
  free(table->field);
  free(table->data);
  *table = (tsv_table){0};
}

const char *tsv_text(const tsv_table *table, int row, const char *column) {
  for (int c = 0; c < table->columns; c++)
    if (!strcmp(table->field[c], column)) return table->field[(row + 1) * table->columns + c];
  fail_msg("no column %s", column);
  return NULL;
}

long long tsv_int(const tsv_table *table, int row, const char *column) {
  return strtoll(tsv_text(table, row, column), NULL, 10);
}

double tsv_double(const tsv_table *table, int row, const char *column) {
  return strtod(tsv_text(table, row, column), NULL);
}
