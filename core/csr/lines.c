/* zlib's gzread also reads plain files, so one path serves both. A line must fit into the buffer: when the buffer has
 * no further line end, the rest moves to its front and the file fills the free space. */
#include "core/csr/lines.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
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
  lines->buffer = wlmi_alloc(WLM_LINES_BUFFER + 1); /* a NUL always fits behind the last line */
  lines->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!lines->buffer || !lines->c_locale || gzbuffer(lines->file, WLM_LINES_BUFFER / 2)) {
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
  if (lines->end == WLM_LINES_BUFFER)
    return wlmi_fail(WLM_ERR_PARSE, "%s:%lld: a line of more than %d bytes; break it up or remove it", lines->path,
                     (long long)lines->number + 1, WLM_LINES_BUFFER);
  int size = gzread(lines->file, lines->buffer + lines->end, (unsigned)(WLM_LINES_BUFFER - lines->end));
  int code = Z_OK;
  if (size == 0) gzerror(lines->file, &code); /* a file cut short reads as its end, with the error set */
  if (size < 0 || code != Z_OK) return read_failed(lines);
  lines->drained = size == 0;
  lines->end += (size_t)size;
  return WLM_OK;
}

wlm_status wlmi_lines_next(wlmi_lines *lines, char **line) {
  char *newline;
  size_t seen = 0;
  *line = NULL;
  while (!(newline = memchr(lines->buffer + lines->at + seen, '\n', lines->end - lines->at - seen)) &&
         !lines->drained) {
    seen = lines->end - lines->at;
    WLM_CHECK(fill(lines));
  }
  if (lines->at == lines->end) return WLM_OK;
  char *start = lines->buffer + lines->at, *end = newline ? newline : lines->buffer + lines->end;
  lines->at = (size_t)(end - lines->buffer) + (newline != NULL);
  lines->number++;
  if (end > start && end[-1] == '\r') end--;
  *end = 0;
  if (memchr(start, 0, (size_t)(end - start)))
    return wlmi_fail(WLM_ERR_PARSE, "%s:%lld: a NUL byte; this is not a text file", lines->path,
                     (long long)lines->number);
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
  while (*text == ' ' || *text == '\t' || *text == '\r') text++;
  return text;
}

wlm_status wlmi_words_line(wlmi_lines *lines, const char *marks, const char **at) {
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

static int is_word_end(const wlmi_lines *lines, char c) {
  return c == 0 || c == ' ' || c == '\t' || c == '\r' || c == lines->separator;
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
  return wlmi_words_fail(lines, WLM_ERR_PARSE, "'%.*s' after the last number of the line; remove it",
                         wlmi_word_size(lines, at), at);
}

/* ---- parsing numbers ---- */

/* Takes the first 19 digits as an integer, rounds it to double and scales it by powers of ten that double holds
 * exactly. Each step errs by at most half a unit in the last place, so the double is within a few units of the number.
 * Rounding it to float gives the nearest float, unless the double lies that close to the middle between two floats.
 * Those numbers, and numbers near the ends of float's range, are left to strtof. */

enum { MAX_DIGITS = 19, EXACT_POWER = 22, MAX_EXPONENT = 3 * EXACT_POWER, DOUBT = 16 };
/* Larger than the number of digits of any line, so digits cannot bring a capped exponent back into range. */
enum { EXPONENT_CAP = 100000000 };

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

typedef struct decimal {
  uint64_t mantissa; /* the first MAX_DIGITS digits */
  int digits;        /* of the mantissa, without leading zeros */
  int exponent;      /* of ten */
} decimal;

/* `step` is added to the exponent for each digit of the mantissa: 0 before the point, -1 after it. */
static const char *read_digits(const char *text, decimal *d, int step) {
  for (; is_digit(*text); text++) {
    int taken = d->digits < MAX_DIGITS;
    if (taken) d->mantissa = d->mantissa * 10 + (uint64_t)(*text - '0');
    d->digits += taken && d->mantissa;
    d->exponent += taken ? step : step + 1;
  }
  return text;
}

static const char *read_exponent(const char *text, decimal *d) {
  int exponent = 0, negative;
  if ((*text | 0x20) != 'e') return text;
  negative = *++text == '-';
  text += negative || *text == '+';
  if (!is_digit(*text)) return NULL;
  for (; is_digit(*text); text++)
    if (exponent < EXPONENT_CAP) exponent = exponent * 10 + (*text - '0');
  d->exponent += negative ? -exponent : exponent;
  return text;
}

static const char *read_decimal(const char *text, decimal *d) {
  const char *start = text;
  text = read_digits(text, d, 0);
  int seen = text > start;
  if (*text == '.') {
    const char *fraction = ++text;
    text = read_digits(text, d, -1);
    seen |= text > fraction;
  }
  return seen ? read_exponent(text, d) : NULL;
}

static double scale(double x, int exponent) {
  static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  for (; exponent > EXACT_POWER; exponent -= EXACT_POWER) x *= powers[EXACT_POWER];
  for (; exponent < -EXACT_POWER; exponent += EXACT_POWER) x /= powers[EXACT_POWER];
  return exponent < 0 ? x / powers[-exponent] : x * powers[exponent];
}

/* 1 where the result is certain to be the nearest float. */
static int convert_fast(const decimal *d, float *value) {
  uint64_t bits;
  *value = 0.0f;
  if (d->mantissa == 0) return 1;
  if (abs(d->exponent) > MAX_EXPONENT) return 0;
  double x = scale((double)d->mantissa, d->exponent);
  if (x < (double)FLT_MIN || x >= (double)FLT_MAX) return 0;
  memcpy(&bits, &x, sizeof bits);
  *value = (float)x;
  /* of the 29 bits that float does not have: not within DOUBT of the middle */
  return llabs((int64_t)(bits & 0x1FFFFFFF) - 0x10000000) > DOUBT;
}

const char *wlmi_parse_float(const char *text, locale_t c_locale, float *value) {
  const char *start = text;
  decimal d = {0, 0, 0};
  int negative = *text == '-';
  text += negative || *text == '+';
  text = read_decimal(text, &d);
  if (!text) return NULL;
  if (convert_fast(&d, value)) {
    if (negative) *value = -*value;
    return text;
  }
  *value = strtof_l(start, NULL, c_locale);
  return isfinite(*value) ? text : NULL;
}
