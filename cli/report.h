/* The result of a command, as lines for people or as one JSON value. One list of facts, two ways to write it.
 *
 * For people: "key  value" lines, a blank line between objects. Text goes to stdout by wlmi_report_flush,
 * which for JSON does nothing until the outermost object is closed, so that what is printed is always whole. */
#ifndef WLM_CLI_REPORT_H
#define WLM_CLI_REPORT_H

#include "cli/table.h"

typedef struct wlmi_report {
  int json;
  wlmi_text text;
  char closers[16]; /* of what is open */
  int depth;
  int wrote;     /* something for people stands above */
  int flushed;   /* something was printed */
  int exit_code; /* where the command fails; 0 = by its status */
} wlmi_report;

/* `key` is NULL for the outermost one and in arrays. */
void wlmi_report_object(wlmi_report *report, const char *key);
void wlmi_report_array(wlmi_report *report, const char *key);
void wlmi_report_close(wlmi_report *report);

void wlmi_report_string(wlmi_report *report, const char *key, const char *value);
void wlmi_report_integer(wlmi_report *report, const char *key, int64_t value);
/* People see the value by `format`, a printf format of one double. */
void wlmi_report_real(wlmi_report *report, const char *key, const char *format, double value);
void wlmi_report_flag(wlmi_report *report, const char *key, int value);
/* Releases the table. only_json: people do not see it, since it is empty. */
void wlmi_report_table(wlmi_report *report, const char *key, wlmi_table *table, int only_json);
/* Text that is already in the report's form: a whole JSON value in an array, or lines. */
void wlmi_report_block(wlmi_report *report, const char *text);
void wlmi_report_line(wlmi_report *report, const char *format, ...) __attribute__((format(printf, 2, 3))); /* people */

/* 0 where memory failed, after a message. */
int wlmi_report_flush(wlmi_report *report);
void wlmi_report_drop(wlmi_report *report); /* of what was not printed yet */
void wlmi_report_release(wlmi_report *report);

#endif
