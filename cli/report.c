#include "cli/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void wlmi_json_real(wlmi_text *out, double value) {
  if (isfinite(value))
    wlmi_text_printf(out, "%.15g", value);
  else
    wlmi_text_puts(out, "null");
}

/* Comma and key of a JSON member. */
static void member(wlmi_report *report, const char *key) {
  if (report->comma) wlmi_text_puts(&report->text, ",");
  report->comma = 1;
  if (!key) return;
  wlmi_text_json_string(&report->text, key);
  wlmi_text_puts(&report->text, ":");
}

static void open_with(wlmi_report *report, const char *key, const char *opener, char closer) {
  if (report->json) {
    member(report, key);
    wlmi_text_puts(&report->text, opener);
    report->comma = 0;
  } else if (closer == '}' && report->wrote) {
    wlmi_text_puts(&report->text, "\n");
    report->wrote = 0;
  }
  report->closers[report->depth++] = closer;
}

void wlmi_report_object(wlmi_report *report, const char *key) { open_with(report, key, "{", '}'); }
void wlmi_report_array(wlmi_report *report, const char *key) { open_with(report, key, "[", ']'); }

void wlmi_report_close(wlmi_report *report) {
  report->depth--;
  if (!report->json) return;
  wlmi_text_append(&report->text, &report->closers[report->depth], 1);
  report->comma = 1;
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
  wlmi_text_printf(&report->text, "%-12s %s\n", key, value);
  report->wrote = 1;
}

void wlmi_report_string(wlmi_report *report, const char *key, const char *value) {
  if (report->json) {
    member(report, key);
    wlmi_text_json_string(&report->text, value);
  } else {
    line_of(report, key, value ? value : "");
  }
}

/* What looks the same in JSON but for the key. */
static void number_of(wlmi_report *report, const char *key, const char *number) {
  if (report->json) {
    member(report, key);
    wlmi_text_puts(&report->text, number);
  } else {
    line_of(report, key, number);
  }
}

void wlmi_report_integer(wlmi_report *report, const char *key, int64_t value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)value);
  number_of(report, key, number);
}

void wlmi_report_real(wlmi_report *report, const char *key, const char *format, double value) {
  if (report->json) {
    member(report, key);
    wlmi_json_real(&report->text, value);
  } else {
    char number[64];
    snprintf(number, sizeof number, format, value);
    line_of(report, key, number);
  }
}

void wlmi_report_flag(wlmi_report *report, const char *key, int value) {
  number_of(report, key, report->json ? value ? "true" : "false" : value ? "yes" : "no");
}

void wlmi_report_block(wlmi_report *report, const char *text) {
  if (report->json)
    member(report, NULL);
  else if (report->wrote)
    wlmi_text_puts(&report->text, "\n");
  wlmi_text_puts(&report->text, text);
  report->wrote = 1;
}

void wlmi_report_table(wlmi_report *report, const char *key, const wlmi_table *table) {
  if (table->failed) report->text.failed = 1;
  if (report->json) {
    member(report, key);
    wlmi_table_json(table, &report->text);
  } else {
    wlmi_table_print(table, &report->text);
    report->wrote = 1;
  }
}

int wlmi_report_flush(wlmi_report *report) {
  if (report->json && report->depth) return 1;
  int whole = !report->text.failed;
  if (whole && report->text.size) fwrite(report->text.data, 1, report->text.size, stdout);
  if (!whole) fputs("warploom: out of memory for the result's text\n", stderr);
  wlmi_text_release(&report->text);
  fflush(stdout); /* main looks whether that worked */
  return whole;
}

void wlmi_report_release(wlmi_report *report) { wlmi_text_release(&report->text); }
