/* The numbers in a line of a text file. Errors name the file, the line and the number. */
#pragma once

#include <locale.h>

#include "core/csr/lines.h"

typedef struct wlmi_fields {
  const wlmi_lines *lines;
  locale_t c_locale;
  char separator; /* between two numbers, besides blanks; 0 = none */
} wlmi_fields;

/* "path:line: ..." */
wlm_status wlmi_fields_fail(const wlmi_fields *fields, wlm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *wlmi_skip_blanks(const char *text);
/* The next line that is neither blank nor a comment, which one of `marks` begins, without leading blanks and a byte
 * order mark; NULL at the end of the file. */
wlm_status wlmi_fields_line(wlmi_lines *lines, const char *marks, const char **at);
/* Bytes of the word at `text`, at most 40: for messages. */
int wlmi_word_size(const wlmi_fields *fields, const char *text);

/* Reads a number and moves *at behind it. `what` names the number in messages. WLM_ERR_PARSE */
wlm_status wlmi_fields_int(const wlmi_fields *fields, const char **at, const char *what, int64_t low, int64_t high,
                           int64_t *value);
wlm_status wlmi_fields_float(const wlmi_fields *fields, const char **at, const char *what, float *value);
/* Refuses what follows the last number. */
wlm_status wlmi_fields_end(const wlmi_fields *fields, const char *at);
