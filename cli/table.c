#include "cli/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"

enum { WIDEST = 120 };

struct wlmi_table_cell {
  char *shown, *json;
  int is_number;
};

void wlmi_table_begin(wlmi_table *table, const char *columns) {
  *table = (wlmi_table){.column_count = 0};
  snprintf(table->names, sizeof table->names, "%s", columns);
  for (char *rest = table->names, *name; (name = strsep(&rest, ","));) {
    struct wlmi_table_column *column = &table->columns[table->column_count++];
    column->key = column->title = (int)(name - table->names);
    const size_t key = strcspn(name, "=");
    if (!name[key]) continue;
    name[key] = 0;
    column->title += (int)key + 1;
  }
}

static const char *key_of(const wlmi_table *table, int column) { return table->names + table->columns[column].key; }

static const char *title_of(const wlmi_table *table, int column) { return table->names + table->columns[column].title; }

/* Takes ownership of both texts. */
static void add(wlmi_table *table, wlmi_text *shown, wlmi_text *json, int is_number) {
  struct wlmi_table_cell cell = {.is_number = is_number};
  if (wlmi_text_take(shown, &cell.shown) != WLM_OK) table->failed = 1;
  if (wlmi_text_take(json, &cell.json) != WLM_OK) table->failed = 1;
  if (wlmi_grow((void **)&table->cells, table->count, &table->capacity, sizeof cell, "cells") != WLM_OK)
    table->failed = 1;
  if (!table->failed) {
    table->cells[table->count++] = cell;
    return;
  }
  wlmi_free(cell.shown);
  wlmi_free(cell.json);
}

/* The text output shows the first line, at most a screen's width of it. */
void wlmi_table_text(wlmi_table *table, const char *text) {
  wlmi_text shown = {0}, json = {0};
  size_t whole = text ? strlen(text) : 0, seen = text ? strcspn(text, "\n") : 0;
  if (seen > WIDEST) seen = WIDEST;
  wlmi_text_append(&shown, text ? text : "", seen);
  if (seen < whole) wlmi_text_puts(&shown, " ...");
  wlmi_text_json_string(&json, text);
  add(table, &shown, &json, 0);
}

static void put_integer(wlmi_table *table, int64_t value) {
  wlmi_text shown = {0}, json = {0};
  wlmi_text_printf(&shown, "%lld", (long long)value);
  wlmi_text_printf(&json, "%lld", (long long)value);
  add(table, &shown, &json, 1);
}

void wlmi_table_real(wlmi_table *table, const char *format, double value) {
  char number[64];
  wlmi_text shown = {0}, json = {0};
  snprintf(number, sizeof number, format, value);
  wlmi_text_puts(&shown, *number && !isfinite(value) ? "-" : number);
  wlmi_json_real(&json, NULL, "%.15g", value);
  add(table, &shown, &json, 1);
}

void wlmi_table_flag(wlmi_table *table, int value) {
  wlmi_text shown = {0}, json = {0};
  wlmi_text_puts(&shown, value ? "yes" : "no");
  wlmi_text_puts(&json, value ? "true" : "false");
  add(table, &shown, &json, 0);
}

void wlmi_table_add(wlmi_table *table, const char *formats, ...) {
  char format[16];
  va_list values;
  va_start(values, formats);
  for (int used; sscanf(formats, "%15s%n", format, &used) == 1; formats += used) {
    if (!strcmp(format, "%s"))
      wlmi_table_text(table, va_arg(values, const char *));
    else if (!strcmp(format, "%jd"))
      put_integer(table, va_arg(values, intmax_t));
    else if (!strcmp(format, "%d"))
      put_integer(table, va_arg(values, int));
    else
      wlmi_table_real(table, format, va_arg(values, double));
  }
  va_end(values);
}

static const struct wlmi_table_cell *cell(const wlmi_table *table, int64_t row, int column) {
  return &table->cells[row * table->column_count + column];
}

/* The width of a column in the text output; 0 if every cell is blank. */
static int width_of(const wlmi_table *table, int column, int *is_number) {
  const int64_t rows = table->count / table->column_count;
  int width = 0;
  *is_number = 1;
  if (!*title_of(table, column)) return 0;
  for (int64_t r = 0; r < rows; r++) {
    int size = (int)strlen(cell(table, r, column)->shown);
    if (size > width) width = size;
    *is_number &= cell(table, r, column)->is_number;
  }
  int title = (int)strlen(title_of(table, column));
  return width && title > width ? title : width;
}

void wlmi_table_print(const wlmi_table *table, wlmi_text *out) {
  int width[WLMI_TABLE_COLUMNS] = {0}, is_number[WLMI_TABLE_COLUMNS] = {0};
  const int64_t rows = table->count / table->column_count;
  for (int c = 0; c < table->column_count; c++) width[c] = width_of(table, c, &is_number[c]);
  for (int64_t r = -1; r < rows; r++) {
    for (int c = 0; c < table->column_count; c++)
      if (width[c])
        wlmi_text_printf(out, is_number[c] ? "%*s  " : "%-*s  ", width[c],
                         r < 0 ? title_of(table, c) : cell(table, r, c)->shown);
    while (out->size && out->data[out->size - 1] == ' ') out->data[--out->size] = 0;
    wlmi_text_puts(out, "\n");
  }
}

void wlmi_table_json(const wlmi_table *table, const char *key, wlmi_text *out) {
  const int64_t rows = table->count / table->column_count;
  wlmi_json_open(out, key, '[');
  for (int64_t r = 0; r < rows; r++) {
    wlmi_json_open(out, NULL, '{');
    for (int c = 0; c < table->column_count; c++)
      if (*key_of(table, c)) wlmi_json_raw(out, key_of(table, c), cell(table, r, c)->json);
    wlmi_json_close(out, '}');
  }
  wlmi_json_close(out, ']');
}

void wlmi_table_release(wlmi_table *table) {
  for (int64_t i = 0; i < table->count; i++) {
    wlmi_free(table->cells[i].shown);
    wlmi_free(table->cells[i].json);
  }
  wlmi_free(table->cells);
  *table = (wlmi_table){0};
}
