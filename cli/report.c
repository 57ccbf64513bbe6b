#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"

static void open_with(wlmi_report *report, const char *key, char opener, char closer) {
  if (report->json) {
    wlmi_json_open(&report->text, key, opener);
  } else if (closer == '}' && report->wrote) {
    wlmi_text_puts(&report->text, "\n");
    report->wrote = 0;
  }
  report->closers[report->depth++] = closer;
}

void wlmi_report_object(wlmi_report *report, const char *key) { open_with(report, key, '{', '}'); }
void wlmi_report_array(wlmi_report *report, const char *key) { open_with(report, key, '[', ']'); }

void wlmi_report_close(wlmi_report *report) {
  report->depth--;
  if (!report->json) return;
  wlmi_json_close(&report->text, report->closers[report->depth]);
  if (!report->depth) wlmi_text_puts(&report->text, "\n");
}

void wlmi_report_line(wlmi_report *report, const char *format, ...) {
  char line[1024];
  va_list args;
  if (report->json) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  wlmi_text_printf(&report->text, "%s\n", line);
  report->wrote = 1;
}

static void line_of(wlmi_report *report, const char *key, const char *value) {
  wlmi_text_printf(&report->text, "%-12s ", key);
  wlmi_text_printable(&report->text, value, 0);
  wlmi_text_puts(&report->text, "\n");
  report->wrote = 1;
}

void wlmi_report_string(wlmi_report *report, const char *key, const char *value) {
  if (report->json)
    wlmi_json_string(&report->text, key, value);
  else
    line_of(report, key, value ? value : "");
}

void wlmi_report_integer(wlmi_report *report, const char *key, int64_t value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)value);
  if (report->json)
    wlmi_json_raw(&report->text, key, number);
  else
    line_of(report, key, number);
}

void wlmi_report_real(wlmi_report *report, const char *key, const char *format, double value) {
  char number[64];
  snprintf(number, sizeof number, format, value);
  if (report->json)
    wlmi_json_real(&report->text, key, "%.15g", value);
  else
    line_of(report, key, number);
}

void wlmi_report_flag(wlmi_report *report, const char *key, int value) {
  if (report->json)
    wlmi_json_raw(&report->text, key, value ? "true" : "false");
  else
    line_of(report, key, value ? "yes" : "no");
}

void wlmi_report_members(wlmi_report *report, const char *formats, ...) {
  char key[32], format[16];
  va_list values;
  va_start(values, formats);
  for (int used; sscanf(formats, " %31[^=]=%15s%n", key, format, &used) == 2; formats += used) {
    if (!strcmp(format, "%s"))
      wlmi_report_string(report, key, va_arg(values, const char *));
    else if (!strcmp(format, "%jd"))
      wlmi_report_integer(report, key, va_arg(values, intmax_t));
    else if (!strcmp(format, "%d"))
      wlmi_report_integer(report, key, va_arg(values, int));
    else
      wlmi_report_real(report, key, format, va_arg(values, double));
  }
  va_end(values);
}

void wlmi_report_strings(wlmi_report *report, const char *key, wlmi_text *lines) {
  char *rest = NULL;
  for (char *line = lines->size ? strtok_r(lines->data, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
    wlmi_report_string(report, report->json ? NULL : key, line);
}

void wlmi_report_block(wlmi_report *report, const char *text) {
  if (report->json) {
    wlmi_json_raw(&report->text, NULL, text);
    if (report->text.size && report->text.data[report->text.size - 1] == '\n')
      report->text.size--; /* another follows */
    return;
  }
  if (report->wrote) wlmi_text_puts(&report->text, "\n");
  wlmi_text_puts(&report->text, text);
  report->wrote = 1;
}

void wlmi_report_table(wlmi_report *report, const char *key, wlmi_table *table, int only_json) {
  if (table->failed) report->text.failed = 1;
  if (report->json) {
    wlmi_table_json(table, key, &report->text);
  } else if (!only_json) {
    wlmi_table_print(table, &report->text);
    report->wrote = 1;
  }
  wlmi_table_release(table);
}

/* Text for people never has control characters besides its line ends. JSON has escapes of its own. */
static int put_out(const wlmi_report *report) {
  wlmi_text shown = {0};
  if (!report->json) wlmi_text_printable(&shown, report->text.data, 1);
  const wlmi_text *text = report->json ? &report->text : &shown;
  const int whole = !text->failed;
  if (whole) fwrite(text->data, 1, text->size, stdout);
  wlmi_text_release(&shown);
  return whole;
}

int wlmi_report_flush(wlmi_report *report) {
  if (report->json && report->depth) return 1;
  int whole = !report->text.failed;
  report->flushed |= report->text.size > 0;
  if (whole && report->text.size) whole = put_out(report);
  if (!whole) fputs("warploom: out of memory for the result's text\n", stderr);
  wlmi_text_release(&report->text);
  fflush(stdout); /* main looks whether that worked */
  return whole;
}

void wlmi_report_release(wlmi_report *report) {
  wlmi_text_release(&report->text);
  report->depth = 0;
}
