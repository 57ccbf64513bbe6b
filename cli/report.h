/* What a command has to tell, as lines for people or as one JSON value. One list of facts, two ways to write it.
 *
 * For people: "key  value" lines, a blank line between objects. Text goes to stdout by wlm_report_flush,
 * which for JSON does nothing until the outermost object is closed, so that what is printed is always whole. */
#ifndef WLM_CLI_REPORT_H
#define WLM_CLI_REPORT_H

#include "cli/table.h"

typedef struct wlm_report {
  int json;
  wlm_text text;
  char closers[16]; /* of what is open */
  int depth, comma;
  int wrote; /* something for people stands above */
} wlm_report;

/* `key` is NULL for the outermost one and in arrays. */
void wlm_report_object(wlm_report *report, const char *key);
void wlm_report_array(wlm_report *report, const char *key);
void wlm_report_close(wlm_report *report);

void wlm_report_string(wlm_report *report, const char *key, const char *value);
void wlm_report_integer(wlm_report *report, const char *key, int64_t value);
/* People see the value by `format`, a printf format of one double. */
void wlm_report_real(wlm_report *report, const char *key, const char *format, double value);
void wlm_report_flag(wlm_report *report, const char *key, int value);
void wlm_report_table(wlm_report *report, const char *key, const wlm_table *table);
/* Text that is already in the report's form: a whole JSON value in an array, or lines. */
void wlm_report_block(wlm_report *report, const char *text);
void wlm_report_line(wlm_report *report, const char *format, ...) __attribute__((format(printf, 2, 3))); /* people */

/* 0 where memory failed, after a message. */
int wlm_report_flush(wlm_report *report);
void wlm_report_release(wlm_report *report);

void wlm_json_real(wlm_text *out, double value); /* null where it is not finite */

#endif
