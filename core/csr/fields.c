#include "core/csr/fields.h"

#include <stdarg.h>
#include <string.h>

#include "core/csr/numbers.h"

wlm_status wlmi_fields_fail(const wlmi_fields *fields, wlm_status status, const char *format, ...) {
  char text[512];
  va_list args;
  const wlmi_lines *lines = fields->lines;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return wlmi_fail(status, "%s:%lld: %s", lines->path, (long long)(lines->number > 0 ? lines->number : 1), text);
}

const char *wlmi_skip_blanks(const char *text) {
  while (*text == ' ' || *text == '\t' || *text == '\r') text++;
  return text;
}

wlm_status wlmi_fields_line(wlmi_lines *lines, const char *marks, const char **at) {
  static const char byte_order_mark[] = "\xEF\xBB\xBF";
  char *line;
  wlm_status status;
  do {
    status = wlmi_lines_next(lines, &line);
    if (line && lines->number == 1 && !strncmp(line, byte_order_mark, 3)) line += 3;
    *at = line ? wlmi_skip_blanks(line) : NULL;
  } while (status == WLM_OK && line && (**at == 0 || strchr(marks, **at)));
  return status;
}

static int is_word_end(const wlmi_fields *fields, char c) {
  return c == 0 || c == ' ' || c == '\t' || c == '\r' || c == fields->separator;
}

int wlmi_word_size(const wlmi_fields *fields, const char *text) {
  int size = 0;
  while (size < 40 && !is_word_end(fields, text[size])) size++;
  return size;
}

static wlm_status begin(const wlmi_fields *fields, const char **at, const char *what) {
  *at = wlmi_skip_blanks(*at);
  if (**at) return WLM_OK;
  return wlmi_fields_fail(fields, WLM_ERR_PARSE, "the %s is missing; the line ends too early", what);
}

wlm_status wlmi_fields_int(const wlmi_fields *fields, const char **at, const char *what, int64_t low, int64_t high,
                           int64_t *value) {
  WLM_CHECK(begin(fields, at, what));
  const char *text = *at, *end = wlmi_parse_int64(text, value);
  if (!end || !is_word_end(fields, *end))
    return wlmi_fields_fail(fields, WLM_ERR_PARSE, "the %s '%.*s' is not an integer%s; correct it", what,
                            wlmi_word_size(fields, text), text, end ? "" : " of 64 bits");
  if (*value < low || *value > high)
    return wlmi_fields_fail(fields, WLM_ERR_PARSE, "the %s %lld is out of range; it must be %lld to %lld", what,
                            (long long)*value, (long long)low, (long long)high);
  *at = end;
  return WLM_OK;
}

wlm_status wlmi_fields_float(const wlmi_fields *fields, const char **at, const char *what, float *value) {
  WLM_CHECK(begin(fields, at, what));
  const char *text = *at, *end = wlmi_parse_float(text, fields->c_locale, value);
  if (!end || !is_word_end(fields, *end))
    return wlmi_fields_fail(fields, WLM_ERR_PARSE,
                            "the %s '%.*s' is not a number within the range of float; correct it", what,
                            wlmi_word_size(fields, text), text);
  *at = end;
  return WLM_OK;
}

wlm_status wlmi_fields_end(const wlmi_fields *fields, const char *at) {
  at = wlmi_skip_blanks(at);
  if (!*at) return WLM_OK;
  return wlmi_fields_fail(fields, WLM_ERR_PARSE, "'%.*s' after the last number of the line; remove it",
                          wlmi_word_size(fields, at), at);
}
