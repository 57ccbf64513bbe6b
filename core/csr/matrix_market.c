/* Reading Matrix Market: the banner says what the numbers are, the size line how many there are, and each line after it
 * is one entry. Entries are appended (twice for a symmetric matrix) to coordinate arrays that grow on demand, so a
 * wrong size line does not allocate memory. csr.c converts them to CSR. */
#include "core/csr/matrix_market.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "core/base/memory.h"
#include "core/csr/lines.h"
#include "core/csr/numbers.h"
#include "core/problem/size.h"

typedef enum field { FIELD_PATTERN, FIELD_INTEGER, FIELD_REAL } field;
typedef enum symmetry { SYMMETRY_GENERAL, SYMMETRY_SYMMETRIC, SYMMETRY_SKEW } symmetry;

/* The five words of the banner: first the supported values in the order of the enums, then known values that are not
 * supported. */
static const struct {
  const char *what, *read[4], *refused[3];
} banner[] = {
    {"first word", {"%%MatrixMarket"}, {NULL}},
    {"object", {"matrix"}, {"vector", "directedgraph"}},
    {"format", {"coordinate"}, {"array"}},
    {"field", {"pattern", "integer", "real"}, {"complex"}},
    {"symmetry", {"general", "symmetric", "skew-symmetric"}, {"hermitian"}},
};
enum { BANNER_WORDS = sizeof banner / sizeof *banner };

typedef struct reader {
  wlmi_lines lines;
  locale_t c_locale;
  field field;
  symmetry symmetry;
  int64_t rows, cols, declared; /* the size line */
  int64_t read;                 /* entries of the file so far */
  int64_t count, capacity;      /* entries in the arrays, mirrored ones included */
  int32_t *row, *col;
  float *value; /* NULL for a pattern */
} reader;

static wlm_status fail_at(const reader *r, wlm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static wlm_status fail_at(const reader *r, wlm_status status, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return wlmi_fail(status, "%s:%lld: %s", r->lines.path, (long long)(r->lines.number > 0 ? r->lines.number : 1), text);
}

static const char *skip_blanks(const char *text) {
  while (*text == ' ' || *text == '\t' || *text == '\r') text++;
  return text;
}

static int is_word_end(char c) { return c == 0 || c == ' ' || c == '\t' || c == '\r'; }
static int word_size(const char *text) {
  int size = 0;
  while (size < 40 && !is_word_end(text[size])) size++;
  return size;
}

/* ---- banner and size line ---- */

static int index_of(const char *const *words, const char *text, int size) {
  for (int i = 0; words[i]; i++)
    if ((int)strlen(words[i]) == size && !strncasecmp(words[i], text, (size_t)size)) return i;
  return -1;
}

static wlm_status read_banner(reader *r) {
  char *line;
  int chosen[BANNER_WORDS];
  wlm_status status = wlmi_lines_next(&r->lines, &line);
  if (status != WLM_OK) return status;
  if (!line) return fail_at(r, WLM_ERR_PARSE, "the file is empty; give a Matrix Market file");
  const char *at = line;
  for (int i = 0; i < BANNER_WORDS; i++) {
    at = skip_blanks(at);
    int size = word_size(at);
    chosen[i] = index_of(banner[i].read, at, size);
    if (chosen[i] < 0 && index_of(banner[i].refused, at, size) >= 0)
      return fail_at(r, WLM_ERR_UNSUPPORTED,
                     "%s '%.*s' is not supported; only coordinate matrices that are pattern, integer or real and "
                     "general, symmetric or skew-symmetric are read",
                     banner[i].what, size, at);
    if (chosen[i] < 0)
      return fail_at(r, WLM_ERR_PARSE,
                     "%s '%.*s' is not Matrix Market; the file must begin with a line such as '%%%%MatrixMarket matrix "
                     "coordinate real general'",
                     banner[i].what, size, at);
    at += size;
  }
  if (*skip_blanks(at)) return fail_at(r, WLM_ERR_PARSE, "'%.40s' after the banner; remove it", skip_blanks(at));
  r->field = (field)chosen[3];
  r->symmetry = (symmetry)chosen[4];
  if (r->field == FIELD_PATTERN && r->symmetry == SYMMETRY_SKEW)
    return fail_at(r, WLM_ERR_UNSUPPORTED, "a pattern cannot be skew-symmetric; give its values (real)");
  return WLM_OK;
}

/* The next line that is neither blank nor a comment, without leading blanks; NULL at the end of the file. */
static wlm_status next_line(reader *r, const char **at) {
  char *line;
  wlm_status status;
  do {
    status = wlmi_lines_next(&r->lines, &line);
    *at = line ? skip_blanks(line) : NULL;
  } while (status == WLM_OK && line && (**at == 0 || **at == '%'));
  return status;
}

static wlm_status read_int(const reader *r, const char **at, const char *what, int64_t low, int64_t high,
                           int64_t *value) {
  const char *text = skip_blanks(*at), *end = wlmi_parse_int64(text, value);
  if (!*text) return fail_at(r, WLM_ERR_PARSE, "the %s is missing; the line ends too early", what);
  if (!end || !is_word_end(*end))
    return fail_at(r, WLM_ERR_PARSE, "the %s '%.*s' is not an integer%s; correct it", what, word_size(text), text,
                   end ? "" : " of 64 bits");
  if (*value < low || *value > high)
    return fail_at(r, WLM_ERR_PARSE, "the %s %lld is out of range; it must be %lld to %lld", what, (long long)*value,
                   (long long)low, (long long)high);
  *at = end;
  return WLM_OK;
}

static wlm_status expect_end(const reader *r, const char *at) {
  at = skip_blanks(at);
  if (*at) return fail_at(r, WLM_ERR_PARSE, "'%.*s' after the last number of the line; remove it", word_size(at), at);
  return WLM_OK;
}

static wlm_status read_size(reader *r) {
  const char *at;
  wlm_status status;
  WLM_TRY(next_line(r, &at));
  if (!at) return fail_at(r, WLM_ERR_PARSE, "the file ends before its size line; expected 'rows columns entries' here");
  WLM_TRY(read_int(r, &at, "number of rows", 0, INT32_MAX, &r->rows));
  WLM_TRY(read_int(r, &at, "number of columns", 0, INT32_MAX, &r->cols));
  WLM_TRY(read_int(r, &at, "number of entries", 0, WLM_MOST_SIZE, &r->declared));
  WLM_TRY(expect_end(r, at));
  if (r->symmetry != SYMMETRY_GENERAL && r->rows != r->cols)
    return fail_at(r, WLM_ERR_PARSE, "%lld x %lld cannot be symmetric; correct the sizes or say 'general'",
                   (long long)r->rows, (long long)r->cols);
done:
  return status;
}

/* ---- entries ---- */

static wlm_status grow(reader *r) {
  int64_t most = r->declared * (r->symmetry == SYMMETRY_GENERAL ? 1 : 2);
  int64_t capacity = r->capacity ? 2 * r->capacity : 1 << 20;
  if (capacity > most) capacity = most;
  size_t bytes = (size_t)capacity * 4;
  void *row = wlmi_realloc(r->row, bytes);
  if (row) r->row = row;
  void *col = wlmi_realloc(r->col, bytes);
  if (col) r->col = col;
  void *value = r->field == FIELD_PATTERN ? NULL : wlmi_realloc(r->value, bytes);
  if (value) r->value = value;
  if (!row || !col || (!value && r->field != FIELD_PATTERN))
    return fail_at(r, WLM_ERR_OUT_OF_MEMORY, "no memory for %lld entries", (long long)capacity);
  r->capacity = capacity;
  return WLM_OK;
}

static wlm_status add(reader *r, int64_t row, int64_t col, float value) {
  wlm_status status = r->count < r->capacity ? WLM_OK : grow(r);
  if (status != WLM_OK) return status;
  r->row[r->count] = (int32_t)(row - 1);
  r->col[r->count] = (int32_t)(col - 1);
  if (r->value) r->value[r->count] = value;
  r->count++;
  return WLM_OK;
}

static wlm_status read_value(const reader *r, const char **at, float *value) {
  int64_t integer;
  wlm_status status;
  if (r->field == FIELD_INTEGER) {
    status = read_int(r, at, "value", -INT64_MAX, INT64_MAX, &integer);
    if (status == WLM_OK) *value = (float)integer;
    return status;
  }
  const char *text = skip_blanks(*at), *end = wlmi_parse_float(text, r->c_locale, value);
  if (!*text) return fail_at(r, WLM_ERR_PARSE, "the value is missing; give it, or say 'pattern' in the first line");
  if (!end || !is_word_end(*end))
    return fail_at(r, WLM_ERR_PARSE, "the value '%.*s' is not a number within the range of float; correct it",
                   word_size(text), text);
  *at = end;
  return WLM_OK;
}

static wlm_status read_entry(reader *r, const char *at) {
  int64_t row, col;
  float value = 1.0f;
  wlm_status status;
  if (r->read == r->declared)
    return fail_at(r, WLM_ERR_PARSE, "more than the %lld entries of the size line; correct that line or remove this",
                   (long long)r->declared);
  WLM_TRY(read_int(r, &at, "row", 1, r->rows, &row));
  WLM_TRY(read_int(r, &at, "column", 1, r->cols, &col));
  if (r->field != FIELD_PATTERN) WLM_TRY(read_value(r, &at, &value));
  WLM_TRY(expect_end(r, at));
  if (r->symmetry == SYMMETRY_SKEW && row == col)
    return fail_at(r, WLM_ERR_PARSE, "a skew-symmetric matrix has no entries on its diagonal; remove this one");
  r->read++;
  WLM_TRY(add(r, row, col, value));
  if (r->symmetry != SYMMETRY_GENERAL && row != col)
    WLM_TRY(add(r, col, row, r->symmetry == SYMMETRY_SKEW ? -value : value));
done:
  return status;
}

static wlm_status read_entries(reader *r) {
  const char *at;
  wlm_status status;
  WLM_TRY(next_line(r, &at));
  while (at) {
    WLM_TRY(read_entry(r, at));
    WLM_TRY(next_line(r, &at));
  }
  if (r->read < r->declared)
    return fail_at(r, WLM_ERR_PARSE,
                   "the file ends after %lld of %lld entries; fetch it again or correct the size line",
                   (long long)r->read, (long long)r->declared);
done:
  return status;
}

/* The entries of a symmetric matrix are counted twice. */
static wlm_status check_size(const reader *r, const wlmi_size_check *check) {
  if (!check) return WLM_OK;
  return check->fits(check->user, r->rows, r->cols, r->declared * (r->symmetry == SYMMETRY_GENERAL ? 1 : 2));
}

wlm_status wlmi_matrix_market_read(const char *path, const wlmi_size_check *check, wlmi_csr_host *out) {
  reader r = {0};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  r.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!r.c_locale) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: the C locale", path);
  WLM_TRY(wlmi_lines_open(path, &r.lines));
  WLM_TRY(read_banner(&r));
  WLM_TRY(read_size(&r));
  WLM_TRY(check_size(&r, check));
  WLM_TRY(read_entries(&r));
  wlmi_lines_close(&r.lines);
  WLM_TRY(wlmi_csr_from_coo(r.rows, r.cols, r.count, r.row, r.col, r.value, out));
done:
  wlmi_lines_close(&r.lines);
  freelocale(r.c_locale);
  wlmi_free(r.row);
  wlmi_free(r.col);
  wlmi_free(r.value);
  return status;
}
