#include "cli/table.h"

#include <string.h>

#include "cli/report.h"
#include "common/memory.h"

struct wlm_table_cell {
  char *shown, *json;
  int is_number;
};

void wlm_table_begin(wlm_table *table, const wlm_table_column *columns, int column_count) {
  *table = (wlm_table){.columns = columns, .column_count = column_count};
}

/* Takes both texts. */
static void add(wlm_table *table, wlm_text *shown, wlm_text *json, int is_number) {
  struct wlm_table_cell cell = {.is_number = is_number};
  if (table->count == table->capacity) {
    int64_t capacity = table->capacity ? 2 * table->capacity : 64;
    struct wlm_table_cell *cells = wlm_realloc(table->cells, (size_t)capacity * sizeof *cells);
    if (cells) {
      table->cells = cells;
      table->capacity = capacity;
    } else {
      table->failed = 1;
    }
  }
  if (wlm_text_take(shown, &cell.shown) != WLM_OK || wlm_text_take(json, &cell.json) != WLM_OK) table->failed = 1;
  if (!table->failed) {
    table->cells[table->count++] = cell;
    return;
  }
  wlm_free(cell.shown);
  wlm_free(cell.json);
}

void wlm_table_text(wlm_table *table, const char *text) {
  wlm_text shown = {0}, json = {0};
  wlm_text_puts(&shown, text ? text : "");
  wlm_text_json_string(&json, text);
  add(table, &shown, &json, 0);
}

void wlm_table_integer(wlm_table *table, int64_t value) {
  wlm_text shown = {0}, json = {0};
  wlm_text_printf(&shown, "%lld", (long long)value);
  wlm_text_printf(&json, "%lld", (long long)value);
  add(table, &shown, &json, 1);
}

void wlm_table_real(wlm_table *table, const char *format, double value) {
  char number[64];
  wlm_text shown = {0}, json = {0};
  snprintf(number, sizeof number, format, value);
  wlm_text_puts(&shown, number);
  wlm_json_real(&json, value);
  add(table, &shown, &json, 1);
}

void wlm_table_flag(wlm_table *table, int value) {
  wlm_text shown = {0}, json = {0};
  wlm_text_puts(&shown, value ? "yes" : "no");
  wlm_text_puts(&json, value ? "true" : "false");
  add(table, &shown, &json, 0);
}

static const struct wlm_table_cell *cell(const wlm_table *table, int64_t row, int column) {
  return &table->cells[row * table->column_count + column];
}

static void print_padded(wlm_text *out, const char *text, int width, int right, int last) {
  if (right)
    wlm_text_printf(out, "%*s", width, text);
  else
    wlm_text_printf(out, "%-*s", last ? 0 : width, text);
  wlm_text_puts(out, last ? "\n" : "  ");
}

void wlm_table_print(const wlm_table *table, wlm_text *out) {
  int width[WLM_TABLE_COLUMNS], right[WLM_TABLE_COLUMNS], last = 0;
  const int64_t rows = table->count / table->column_count;
  for (int c = 0; c < table->column_count; c++) {
    if (!table->columns[c].title) continue;
    last = c;
    width[c] = (int)strlen(table->columns[c].title);
    right[c] = rows > 0;
    for (int64_t r = 0; r < rows; r++) {
      int size = (int)strlen(cell(table, r, c)->shown);
      if (size > width[c]) width[c] = size;
      right[c] &= cell(table, r, c)->is_number;
    }
  }
  for (int64_t r = -1; r < rows; r++)
    for (int c = 0; c <= last; c++)
      if (table->columns[c].title)
        print_padded(out, r < 0 ? table->columns[c].title : cell(table, r, c)->shown, width[c], right[c], c == last);
}

void wlm_table_json(const wlm_table *table, wlm_text *out) {
  const int64_t rows = table->count / table->column_count;
  wlm_text_puts(out, "[");
  for (int64_t r = 0; r < rows; r++) {
    const char *comma = "";
    wlm_text_puts(out, r ? ",{" : "{");
    for (int c = 0; c < table->column_count; c++) {
      if (!table->columns[c].key) continue;
      wlm_text_puts(out, comma);
      wlm_text_json_string(out, table->columns[c].key);
      wlm_text_printf(out, ":%s", cell(table, r, c)->json);
      comma = ",";
    }
    wlm_text_puts(out, "}");
  }
  wlm_text_puts(out, "]");
}

void wlm_table_release(wlm_table *table) {
  for (int64_t i = 0; i < table->count; i++) {
    wlm_free(table->cells[i].shown);
    wlm_free(table->cells[i].json);
  }
  wlm_free(table->cells);
  *table = (wlm_table){0};
}
