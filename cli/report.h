/* Writes the result of a command as text or as one JSON value, from the same calls.
 *
 * Text has lines "key value" and a blank line between objects. wlmi_report_flush prints text; for JSON it prints
 * nothing until the outermost object is closed, so the output is always complete. */
#pragma once

#include "cli/table.h"

typedef struct wlmi_report {
  int json;
  wlmi_text text;
  char closers[16]; /* closing brackets of the open objects and arrays */
  int depth;
  int wrote;     /* text was written before */
  int flushed;   /* something was printed */
  int exit_code; /* exit code if the command fails; 0 = by its status */
} wlmi_report;

/* `key` is NULL for the outermost one and in arrays. */
void wlmi_report_object(wlmi_report *report, const char *key);
void wlmi_report_array(wlmi_report *report, const char *key);
void wlmi_report_close(wlmi_report *report);

void wlmi_report_string(wlmi_report *report, const char *key, const char *value);
void wlmi_report_integer(wlmi_report *report, const char *key, int64_t value);
/* Text shows the value by `format`, a printf format for one double. */
void wlmi_report_real(wlmi_report *report, const char *key, const char *format, double value);
void wlmi_report_flag(wlmi_report *report, const char *key, int value);
/* Several members by their keys and formats, as in "file=%s n=%d rows=%jd mean=%.3f": a text, an int, an int64_t,
 * a double. */
void wlmi_report_members(wlmi_report *report, const char *formats, ...) __attribute__((format(printf, 2, 3)));
/* Releases the table. only_json: the text leaves it out, because it is empty. */
void wlmi_report_table(wlmi_report *report, const char *key, wlmi_table *table, int only_json);
/* Adds each line of the text, which it changes, as a string; JSON has no key for it. */
void wlmi_report_strings(wlmi_report *report, const char *key, wlmi_text *lines);
/* Adds text that is already in the report's format: a complete JSON value of an array, or lines. */
void wlmi_report_block(wlmi_report *report, const char *text);
void wlmi_report_line(wlmi_report *report, const char *format, ...) __attribute__((format(printf, 2, 3))); /* people */

/* 0, after a message, if memory ran out. */
int wlmi_report_flush(wlmi_report *report);
void wlmi_report_release(wlmi_report *report); /* drops text that was not printed yet */
