/* Converts a summary from Markdown to JSON, {"tables":[{"titles":[...],"rows":[[...]]}],"lines":[...]}, so both have
 * the same content. Cells become numbers where possible, otherwise texts. */
#include <stdlib.h>
#include <string.h>

#include "bench/summary.h"

enum { MOST_CELLS = 32 };

/* Splits "| a | b |" in place. */
static int split_row(char *line, char *cells[MOST_CELLS]) {
  int count = 0;
  for (char *cell = strtok(line, "|"); cell && count < MOST_CELLS; cell = strtok(NULL, "|")) {
    cell += strspn(cell, " ");
    for (size_t size = strlen(cell); size && cell[size - 1] == ' ';) cell[--size] = 0;
    cells[count++] = cell;
  }
  return count;
}

static void put_row(const char *key, char *line, wlmi_report *report) {
  char *cells[MOST_CELLS], *end;
  const int count = split_row(line, cells);
  wlmi_report_array(report, key);
  for (int i = 0; i < count; i++) {
    const double number = strtod(cells[i], &end);
    if (*cells[i] && !*end)
      wlmi_report_real(report, NULL, "%g", number);
    else
      wlmi_report_string(report, NULL, cells[i]);
  }
  wlmi_report_close(report);
}

static void end_table(int *in_table, wlmi_report *report) {
  for (; *in_table; (*in_table)--) wlmi_report_close(report);
}

void wlmi_summary_json(char *markdown, wlmi_report *report) {
  wlmi_text lines = {0};
  char *rest = NULL;
  int in_table = 0; /* what is open of one */
  wlmi_report_object(report, NULL);
  wlmi_report_array(report, "tables");
  for (char *line = markdown, *next; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (*line != '|') {
      end_table(&in_table, report);
      if (*line) wlmi_text_printf(&lines, "%s\n", line);
    } else if (!in_table) {
      wlmi_report_object(report, NULL);
      put_row("titles", line, report);
      wlmi_report_array(report, "rows");
      in_table = 2;
    } else if (strspn(line, "|-: ") < strlen(line)) {
      put_row(NULL, line, report);
    }
  }
  end_table(&in_table, report);
  wlmi_report_close(report);
  wlmi_report_array(report, "lines");
  for (char *line = lines.size ? strtok_r(lines.data, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
    wlmi_report_string(report, NULL, line);
  wlmi_text_release(&lines);
}
