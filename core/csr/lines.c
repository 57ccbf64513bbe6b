/* zlib's gzread also reads plain files, so one path serves both. When the buffer has no further line end, the rest
 * moves to its front and the file fills the free space. Of a line that fills the whole buffer, a comment as a rule, the
 * middle is dropped. */
#include "core/csr/lines.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/memory.h"

/* "-" is standard input. */
static gzFile open_file(const char *path) {
  if (strcmp(path, "-")) return gzopen(path, "rb");
  const int copy = dup(STDIN_FILENO); /* gzclose closes it */
  return copy < 0 ? NULL : gzdopen(copy, "rb");
}

wlm_status wlmi_lines_open(const char *path, wlmi_lines *lines) {
  *lines = (wlmi_lines){.path = strcmp(path, "-") ? path : "standard input"};
  errno = 0;
  lines->file = open_file(path);
  if (!lines->file)
    return wlmi_fail(errno ? WLM_ERR_IO : WLM_ERR_OUT_OF_MEMORY, "%s: cannot be opened: %s", lines->path,
                     errno ? strerror(errno) : "out of memory");
  lines->buffer = wlmi_alloc(WLMI_LINES_BUFFER + 1); /* a NUL always fits behind the last line */
  lines->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!lines->buffer || !lines->c_locale || gzbuffer(lines->file, WLMI_LINES_BUFFER / 2)) {
    wlmi_lines_close(lines);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: read buffer", path);
  }
  return WLM_OK;
}

void wlmi_lines_close(wlmi_lines *lines) {
  if (lines->file) gzclose(lines->file);
  if (lines->c_locale) freelocale(lines->c_locale);
  wlmi_free(lines->buffer);
  *lines = (wlmi_lines){0};
}

static wlm_status read_failed(const wlmi_lines *lines) {
  int code, system = errno;
  const char *text = gzerror(lines->file, &code);
  if (code == Z_ERRNO)
    return wlmi_fail(WLM_ERR_IO, "%s: cannot be read: %s", lines->path, system ? strerror(system) : text);
  return wlmi_fail(WLM_ERR_IO, "%s:%lld: damaged gzip data after this line (%s); fetch or compress the file again",
                   lines->path, (long long)lines->number, code == Z_BUF_ERROR ? "it ends too early" : text);
}

static wlm_status fill(wlmi_lines *lines) {
  lines->end -= lines->at;
  memmove(lines->buffer, lines->buffer + lines->at, lines->end);
  lines->at = 0;
  int size = gzread(lines->file, lines->buffer + lines->end, (unsigned)(WLMI_LINES_BUFFER - lines->end));
  int code = Z_OK;
  if (size == 0) gzerror(lines->file, &code); /* a file cut short reads as its end, with the error set */
  if (size < 0 || code != Z_OK) return read_failed(lines);
  lines->drained = size == 0;
  lines->end += (size_t)size;
  return WLM_OK;
}

/* The bytes of the line before its end, to which the first `size` belong. */
static size_t line_size(const wlmi_lines *lines, size_t size) {
  const char *start = lines->buffer + lines->at;
  const size_t most = lines->end - lines->at;
  while (size < most && start[size] != '\n' && start[size] != '\r' && start[size]) size++;
  return size;
}

/* Makes room behind the first `size` bytes of a line that fill the buffer. Returns how many of them are left. */
static size_t cut_line(wlmi_lines *lines, size_t size) {
  enum { KEPT = 1 << 10 };
  memmove(lines->buffer + KEPT, lines->buffer + size, lines->end - size); /* the first byte of its end, if anything */
  lines->end -= size - KEPT;
  lines->is_cut = 1;
  return KEPT;
}

/* The next line without its end (\n, \r\n or \r), terminated by NUL and valid until the next call; NULL after the
 * last. A line longer than the buffer is cut in its middle. */
static wlm_status next_line(wlmi_lines *lines, char **line) {
  size_t size;
  *line = NULL;
  lines->is_cut = 0;
  /* One byte more than the line's end: a \n may follow a \r. */
  for (size = line_size(lines, 0); lines->at + size + 1 >= lines->end && !lines->drained;
       size = line_size(lines, size)) {
    if (lines->at == 0 && lines->end == WLMI_LINES_BUFFER) size = cut_line(lines, size);
    WLM_CHECK(fill(lines));
  }
  if (lines->at == lines->end) return WLM_OK;
  char *start = lines->buffer + lines->at;
  const size_t left = lines->end - lines->at; /* more than `size` unless the last line has no end */
  lines->number++;
  if (left > size && !start[size])
    return wlmi_fail(WLM_ERR_PARSE, "%s:%lld: a NUL byte; give a text in UTF-8, which has none", lines->path,
                     (long long)lines->number);
  lines->at += left > size + 1 && start[size] == '\r' && start[size + 1] == '\n' ? size + 2 : size + (left > size);
  start[size] = 0;
  *line = start;
  return WLM_OK;
}

wlm_status wlmi_lines_peek(wlmi_lines *lines, size_t size, const char **start, size_t *found) {
  wlm_status status = WLM_OK;
  while (status == WLM_OK && lines->end < size && !lines->drained) status = fill(lines);
  *start = lines->buffer;
  *found = lines->end;
  return status;
}

wlm_status wlmi_lines_rest(wlmi_lines *lines, wlmi_text *bytes) {
  wlm_status status = WLM_OK;
  if (!gzdirect(lines->file))
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: compressed by gzip, which only text files may be; unpack it by gunzip",
                     lines->path);
  do {
    wlmi_text_append(bytes, lines->buffer + lines->at, lines->end - lines->at);
    lines->at = lines->end;
    if (!lines->drained) status = fill(lines);
  } while (status == WLM_OK && !bytes->failed && lines->at < lines->end);
  return bytes->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %zu bytes", lines->path, bytes->size) : status;
}

/* ---- numbers in lines ---- */

wlm_status wlmi_words_fail(const wlmi_lines *lines, wlm_status status, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return wlmi_fail(status, "%s:%lld: %s", lines->path, (long long)(lines->number > 0 ? lines->number : 1), text);
}

const char *wlmi_skip_blanks(const char *text) {
  while (*text == ' ' || *text == '\t') text++;
  return text;
}

wlm_status wlmi_words_line(wlmi_lines *lines, const char *marks, const char **at) {
  static const char byte_order_mark[] = "\xEF\xBB\xBF";
  char *line;
  do {
    *at = NULL;
    WLM_CHECK(next_line(lines, &line));
    if (!line) return WLM_OK;
    *at = wlmi_skip_blanks(lines->number == 1 && !strncmp(line, byte_order_mark, 3) ? line + 3 : line);
  } while (**at == 0 || strchr(marks, **at));
  if (!lines->is_cut || strchr("%#", **at)) return WLM_OK;
  return wlmi_words_fail(lines, WLM_ERR_PARSE, "a line of more than %d bytes; break it up or remove it",
                         WLMI_LINES_BUFFER);
}

static int is_word_end(const wlmi_lines *lines, char c) {
  return c == 0 || c == ' ' || c == '\t' || c == lines->separator;
}

int wlmi_word_size(const wlmi_lines *lines, const char *text) {
  int size = 0;
  while (size < 40 && !is_word_end(lines, text[size])) size++;
  return size;
}

static wlm_status begin(const wlmi_lines *lines, const char **at, const char *what) {
  *at = wlmi_skip_blanks(*at);
  if (**at) return WLM_OK;
  return wlmi_words_fail(lines, WLM_ERR_PARSE, "the %s is missing; the line ends too early", what);
}

wlm_status wlmi_words_int(const wlmi_lines *lines, const char **at, const char *what, int64_t low, int64_t high,
                          int64_t *value) {
  WLM_CHECK(begin(lines, at, what));
  const char *text = *at, *end = wlmi_parse_int64(text, value);
  if (!end || !is_word_end(lines, *end))
    return wlmi_words_fail(lines, WLM_ERR_PARSE, "the %s '%.*s' is not an integer%s; correct it", what,
                           wlmi_word_size(lines, text), text, end ? "" : " of 64 bits");
  if (*value < low || *value > high)
    return wlmi_words_fail(lines, WLM_ERR_PARSE, "the %s %lld is out of range; it must be %lld to %lld", what,
                           (long long)*value, (long long)low, (long long)high);
  *at = end;
  return WLM_OK;
}

wlm_status wlmi_words_float(const wlmi_lines *lines, const char **at, const char *what, float *value) {
  WLM_CHECK(begin(lines, at, what));
  const char *text = *at, *end = wlmi_parse_float(text, lines->c_locale, value);
  if (!end || !is_word_end(lines, *end))
    return wlmi_words_fail(lines, WLM_ERR_PARSE, "the %s '%.*s' is not a number within the range of float; correct it",
                           what, wlmi_word_size(lines, text), text);
  *at = end;
  return WLM_OK;
}

wlm_status wlmi_words_end(const wlmi_lines *lines, const char *at) {
  at = wlmi_skip_blanks(at);
  if (!*at) return WLM_OK;
  const int size = wlmi_word_size(lines, at); /* 0: a separator */
  return wlmi_words_fail(lines, WLM_ERR_PARSE, "'%.*s' after the last number of the line; remove it", size ? size : 40,
                         at);
}

/* ---- parsing numbers ---- */

static int is_digit(char c) { return (unsigned char)(c - '0') < 10; }

const char *wlmi_parse_int64(const char *text, int64_t *value) {
  int negative = *text == '-';
  int64_t result = 0;
  text += negative || *text == '+';
  if (!is_digit(*text)) return NULL;
  for (; is_digit(*text); text++)
    if (__builtin_mul_overflow(result, 10, &result) || __builtin_add_overflow(result, *text - '0', &result))
      return NULL;
  *value = negative ? -result : result;
  return text;
}

/* A number of at most 15 digits without an exponent is the quotient of two doubles that are exact, so that the double
 * is the nearest one (Clinger 1990: How to Read Floating Point Numbers Accurately), and then the nearest float unless
 * it lies in the middle between two. NULL for all other numbers. */
static const char *parse_short(const char *text, float *value) {
  enum { MOST_DIGITS = 15 };
  static const double powers[MOST_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const int is_negative = *text == '-';
  int64_t number = 0, bits;
  int digits = 0, has_point = 0, behind_point = 0;
  for (text += is_negative || *text == '+';; text++) {
    if (*text == '.' && !has_point) {
      has_point = 1;
    } else if (is_digit(*text) && digits < MOST_DIGITS) {
      number = 10 * number + (*text - '0');
      behind_point += has_point;
      digits++;
    } else {
      break;
    }
  }
  const double x = (double)number / powers[behind_point];
  memcpy(&bits, &x, sizeof bits);
  if (!digits || is_digit(*text) || (*text | 0x20) == 'e' || (*text | 0x20) == 'd') return NULL;
  *value = (float)(is_negative ? -x : x);
  return (bits & 0x1FFFFFFF) == 0x10000000 ? NULL
                                           : text; /* of the bits that float does not have the first alone is set */
}

/* An exponent of Fortran, as in 1.5D+02, whose mantissa has `size` bytes. */
static const char *parse_fortran(const char *text, size_t size, locale_t c_locale, float *value) {
  char copy[128], *end;
  if (size + 8 > sizeof copy) return NULL;
  snprintf(copy, sizeof copy, "%.*se%.6s", (int)size, text, text + size + 1);
  *value = strtof_l(copy, &end, c_locale);
  return isfinite(*value) && *end != 'e' ? text + (end - copy) : NULL;
}

const char *wlmi_parse_float(const char *text, locale_t c_locale, float *value) {
  const char *behind = parse_short(text, value), *digits = text + (*text == '-' || *text == '+');
  char *end;
  if (behind) return behind;
  const int is_number = is_digit(digits[*digits == '.']);
  if (!is_number && strncasecmp_l(digits, "nan", 3, c_locale) && strncasecmp_l(digits, "inf", 3, c_locale)) return NULL;
  *value = strtof_l(text, &end, c_locale);
  if (is_number && (*end | 0x20) == 'd') return parse_fortran(text, (size_t)(end - text), c_locale, value);
  return !is_number || (isfinite(*value) && (*end | 0x20) != 'e') ? end : NULL;
}
