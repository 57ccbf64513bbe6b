#include "cli/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

void wlm_json_real(wlm_text *out, double value) {
  if (isfinite(value))
    wlm_text_printf(out, "%.15g", value);
  else
    wlm_text_puts(out, "null");
}

/* Comma and key of a JSON member. */
static void member(wlm_report *report, const char *key) {
  if (report->comma) wlm_text_puts(&report->text, ",");
  report->comma = 1;
  if (!key) return;
  wlm_text_json_string(&report->text, key);
  wlm_text_puts(&report->text, ":");
}

static void open_with(wlm_report *report, const char *key, const char *opener, char closer) {
  if (report->json) {
    member(report, key);
    wlm_text_puts(&report->text, opener);
    report->comma = 0;
  } else if (closer == '}' && report->wrote) {
    wlm_text_puts(&report->text, "\n");
    report->wrote = 0;
  }
  report->closers[report->depth++] = closer;
}

void wlm_report_object(wlm_report *report, const char *key) { open_with(report, key, "{", '}'); }
void wlm_report_array(wlm_report *report, const char *key) { open_with(report, key, "[", ']'); }

void wlm_report_close(wlm_report *report) {
  report->depth--;
  if (!report->json) return;
  wlm_text_append(&report->text, &report->closers[report->depth], 1);
  report->comma = 1;
  if (!report->depth) wlm_text_puts(&report->text, "\n");
}

void wlm_report_line(wlm_report *report, const char *format, ...) {
  char line[1024];
  va_list args;
  if (report->json) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  wlm_text_printf(&report->text, "%s\n", line);
  report->wrote = 1;
}

static void line_of(wlm_report *report, const char *key, const char *value) {
  wlm_text_printf(&report->text, "%-12s %s\n", key, value);
  report->wrote = 1;
}

void wlm_report_string(wlm_report *report, const char *key, const char *value) {
  if (report->json) {
    member(report, key);
    wlm_text_json_string(&report->text, value);
  } else {
    line_of(report, key, value ? value : "");
  }
}

/* What looks the same in JSON but for the key. */
static void number_of(wlm_report *report, const char *key, const char *number) {
  if (report->json) {
    member(report, key);
    wlm_text_puts(&report->text, number);
  } else {
    line_of(report, key, number);
  }
}

void wlm_report_integer(wlm_report *report, const char *key, int64_t value) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)value);
  number_of(report, key, number);
}

void wlm_report_real(wlm_report *report, const char *key, const char *format, double value) {
  if (report->json) {
    member(report, key);
    wlm_json_real(&report->text, value);
  } else {
    char number[64];
    snprintf(number, sizeof number, format, value);
    line_of(report, key, number);
  }
}

void wlm_report_flag(wlm_report *report, const char *key, int value) {
  number_of(report, key, report->json ? value ? "true" : "false" : value ? "yes" : "no");
}

void wlm_report_block(wlm_report *report, const char *text) {
  if (report->json)
    member(report, NULL);
  else if (report->wrote)
    wlm_text_puts(&report->text, "\n");
  wlm_text_puts(&report->text, text);
  report->wrote = 1;
}

void wlm_report_table(wlm_report *report, const char *key, const wlm_table *table) {
  if (table->failed) report->text.failed = 1;
  if (report->json) {
    member(report, key);
    wlm_table_json(table, &report->text);
  } else {
    wlm_table_print(table, &report->text);
    report->wrote = 1;
  }
}

int wlm_report_flush(wlm_report *report) {
  if (report->json && report->depth) return 1;
  int whole = !report->text.failed;
  if (whole && report->text.size) fwrite(report->text.data, 1, report->text.size, stdout);
  if (!whole) fputs("warploom: out of memory for the result's text\n", stderr);
  wlm_text_release(&report->text);
  fflush(stdout); /* main looks whether that worked */
  return whole;
}

void wlm_report_release(wlm_report *report) { wlm_text_release(&report->text); }
