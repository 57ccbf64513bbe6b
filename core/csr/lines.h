/* Reads the lines of a text file, plain or compressed by gzip, through one buffer of fixed size. */
#pragma once

#include <locale.h>
#include <stdint.h>
#include <zlib.h>

#include "core/base/text.h"

enum { WLMI_LINES_BUFFER = 1 << 18 };

typedef struct wlmi_lines {
  const char *path; /* the caller's, or "standard input" */
  gzFile file;
  int64_t number; /* of the last line returned, from 1 */
  char *buffer;   /* unread bytes at buffer[at, end) */
  size_t at, end;
  int drained; /* nothing more comes from the file */
  int is_cut;  /* the last line was longer than the buffer, and was cut in its middle */
  locale_t c_locale;
  char separator; /* between two numbers, besides blanks; 0 = none */
} wlmi_lines;

/* "-" is standard input. The first bytes decide whether the data is compressed, not the name. WLM_ERR_IO */
wlm_status wlmi_lines_open(const char *path, wlmi_lines *lines);
void wlmi_lines_close(wlmi_lines *lines); /* also of a zeroed one */

/* The first bytes of the file, before any line is read; fewer than `size` only where the file is shorter. */
wlm_status wlmi_lines_peek(wlmi_lines *lines, size_t size, const char **start, size_t *found);
/* Appends all bytes that were not read as lines. A compressed file is refused: it may unpack to any size. */
wlm_status wlmi_lines_rest(wlmi_lines *lines, wlmi_text *bytes);

/* The numbers in a line of a text file. Errors name the file, the line and the number. */

/* "path:line: ..." */
wlm_status wlmi_words_fail(const wlmi_lines *lines, wlm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *wlmi_skip_blanks(const char *text);
/* The next line that is neither blank nor a comment, which one of `marks` begins, without leading blanks and a byte
 * order mark, valid until the next call; NULL at the end of the file. WLM_ERR_IO for damaged gzip data, WLM_ERR_PARSE
 * for a NUL byte and for a line longer than the buffer, unless % or # begins it. */
wlm_status wlmi_words_line(wlmi_lines *lines, const char *marks, const char **at);
/* Bytes of the word at `text`, at most 40: for messages. */
int wlmi_word_size(const wlmi_lines *lines, const char *text);

/* Reads a number and moves *at behind it. `what` names the number in messages. WLM_ERR_PARSE */
wlm_status wlmi_words_int(const wlmi_lines *lines, const char **at, const char *what, int64_t low, int64_t high,
                          int64_t *value);
wlm_status wlmi_words_float(const wlmi_lines *lines, const char **at, const char *what, float *value);
/* Refuses what follows the last number. */
wlm_status wlmi_words_end(const wlmi_lines *lines, const char *at);

/* Parses decimal numbers quickly, exactly, and independently of the locale. */

/* [+-]digits. Returns the character after the number, or NULL if there is no number or it does not fit. */
const char *wlmi_parse_int64(const char *text, int64_t *value);

/* [+-]digits[.digits][e[+-]digits], rounded to the nearest float; d may stand for e, as in Fortran. Also nan, inf and
 * infinity, in any case. NULL also for a number beyond the range of float; a number smaller than the smallest float
 * becomes 0. `c_locale` is newlocale(LC_ALL_MASK, "C", 0). */
const char *wlmi_parse_float(const char *text, locale_t c_locale, float *value);
