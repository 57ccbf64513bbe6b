/* Reading Matrix Market: the banner says what the numbers are, the size line how many there are, and each line after it
 * is one entry, or two of a symmetric matrix. A wrong size line does not allocate memory (wlmi_entries). */
#include "core/csr/formats.h"

#include <string.h>
#include <strings.h>

#include "core/csr/lines.h"
#include "core/problem/size.h"

typedef enum field { FIELD_PATTERN, FIELD_INTEGER, FIELD_UNSIGNED, FIELD_REAL } field;
typedef enum symmetry { SYMMETRY_GENERAL, SYMMETRY_SYMMETRIC, SYMMETRY_HERMITIAN, SYMMETRY_SKEW } symmetry;

/* The five words of the banner: first the supported values in the order of the enums, then known values that are not
 * supported. */
static const struct {
  const char *what, *read[5], *refused[3];
} banner[] = {
    {"first word", {"MatrixMarket"}, {NULL}},
    {"object", {"matrix"}, {"vector", "directedgraph"}},
    {"format", {"coordinate"}, {"array"}},
    {"field", {"pattern", "integer", "unsigned-integer", "real"}, {"complex"}},
    {"symmetry", {"general", "symmetric", "hermitian", "skew-symmetric"}, {NULL}},
};
enum { BANNER_WORDS = sizeof banner / sizeof *banner };

typedef struct reader {
  wlmi_lines *lines;
  field field;
  symmetry symmetry;
  int64_t rows, cols, declared; /* the size line */
  int64_t read;                 /* entries of the file so far */
  wlmi_entries entries;         /* mirrored ones included */
} reader;

/* ---- banner and size line ---- */

static int index_of(const reader *r, const char *const *words, const char *text, int size) {
  for (int i = 0; words[i]; i++)
    if ((int)strlen(words[i]) == size && !strncasecmp_l(words[i], text, (size_t)size, r->lines->c_locale)) return i;
  return -1;
}

static wlm_status read_banner(reader *r, const char *line) {
  int chosen[BANNER_WORDS];
  if (!line) return wlmi_words_fail(r->lines, WLM_ERR_PARSE, "the file is empty; give a Matrix Market file");
  const char *at = line + strspn(line, "%#");
  for (int i = 0; i < BANNER_WORDS; i++) {
    at = wlmi_skip_blanks(at);
    int size = wlmi_word_size(r->lines, at);
    chosen[i] = index_of(r, banner[i].read, at, size);
    if (chosen[i] < 0 && index_of(r, banner[i].refused, at, size) >= 0)
      return wlmi_words_fail(
          r->lines, WLM_ERR_UNSUPPORTED,
          "%s '%.*s' is not supported; only coordinate matrices that are pattern, integer, unsigned-integer or "
          "real and general, symmetric, hermitian or skew-symmetric are read",
          banner[i].what, size, at);
    if (chosen[i] < 0)
      return wlmi_words_fail(
          r->lines, WLM_ERR_PARSE,
          "%s '%.*s' is not Matrix Market; the file must begin with a line such as '%%%%MatrixMarket matrix "
          "coordinate real general'",
          banner[i].what, size, at);
    at += size;
  }
  if (*wlmi_skip_blanks(at))
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE, "'%.40s' after the banner; remove it", wlmi_skip_blanks(at));
  r->field = (field)chosen[3];
  r->symmetry = (symmetry)chosen[4];
  if (r->field == FIELD_PATTERN && r->symmetry == SYMMETRY_SKEW)
    return wlmi_words_fail(r->lines, WLM_ERR_UNSUPPORTED, "a pattern cannot be skew-symmetric; give its values (real)");
  return WLM_OK;
}

static wlm_status read_size(reader *r) {
  const char *at;
  WLM_CHECK(wlmi_words_line(r->lines, "%", &at));
  if (!at)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "the file ends before its size line; expected 'rows columns entries' here");
  WLM_CHECK(wlmi_words_int(r->lines, &at, "number of rows", 0, INT32_MAX, &r->rows));
  WLM_CHECK(wlmi_words_int(r->lines, &at, "number of columns", 0, INT32_MAX, &r->cols));
  WLM_CHECK(wlmi_words_int(r->lines, &at, "number of entries", 0, WLMI_MOST_SIZE, &r->declared));
  WLM_CHECK(wlmi_words_end(r->lines, at));
  if (r->symmetry != SYMMETRY_GENERAL && r->rows != r->cols)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "%lld x %lld cannot be symmetric; correct the sizes or say 'general'", (long long)r->rows,
                           (long long)r->cols);
  return WLM_OK;
}

/* ---- entries ---- */

static wlm_status add(reader *r, int64_t row, int64_t col, float value) {
  const int64_t most = r->declared * (r->symmetry == SYMMETRY_GENERAL ? 1 : 2);
  const wlm_status status = wlmi_entries_add(&r->entries, most, row - 1, col - 1, value);
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s", r->lines->path);
}

/* [+-]digits. The sign of an unsigned integer is no minus. */
static int is_integer(const reader *r, const char *text) {
  text += *text == '+' || (*text == '-' && r->field == FIELD_INTEGER);
  const size_t digits = strspn(text, "0123456789");
  return digits && strchr(" \t", text[digits]);
}

static wlm_status read_value(const reader *r, const char **at, float *value) {
  const char *text = wlmi_skip_blanks(*at);
  if (!*text)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "the value is missing; give it, or say 'pattern' in the first line");
  if (r->field != FIELD_REAL && !is_integer(r, text))
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE, "the value '%.*s' is not an %s; correct it or the banner",
                           wlmi_word_size(r->lines, text), text, banner[3].read[r->field]);
  return wlmi_words_float(r->lines, at, "value", value);
}

static wlm_status read_entry(reader *r, const char *at) {
  int64_t row, col;
  float value = 1.0f;
  if (r->read == r->declared)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "more than the %lld entries of the size line; correct that line or remove this",
                           (long long)r->declared);
  WLM_CHECK(wlmi_words_int(r->lines, &at, "row", 1, r->rows, &row));
  WLM_CHECK(wlmi_words_int(r->lines, &at, "column", 1, r->cols, &col));
  if (r->field != FIELD_PATTERN) WLM_CHECK(read_value(r, &at, &value));
  WLM_CHECK(wlmi_words_end(r->lines, at));
  if (r->symmetry == SYMMETRY_SKEW && row == col)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "a skew-symmetric matrix has no entries on its diagonal; remove this one");
  r->read++;
  WLM_CHECK(add(r, row, col, value));
  if (r->symmetry != SYMMETRY_GENERAL && row != col)
    WLM_CHECK(add(r, col, row, r->symmetry == SYMMETRY_SKEW ? -value : value));
  return WLM_OK;
}

static wlm_status read_entries(reader *r) {
  const char *at;
  WLM_CHECK(wlmi_words_line(r->lines, "%", &at));
  while (at) {
    WLM_CHECK(read_entry(r, at));
    WLM_CHECK(wlmi_words_line(r->lines, "%", &at));
  }
  if (r->read < r->declared)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "the file ends after %lld of %lld entries; fetch it again or correct the size line",
                           (long long)r->read, (long long)r->declared);
  return WLM_OK;
}

/* The entries of a symmetric matrix are counted twice. */
static wlm_status check_size(const reader *r, const wlmi_size_check *check) {
  if (!check) return WLM_OK;
  return check->fits(check->user, r->rows, r->cols, r->declared * (r->symmetry == SYMMETRY_GENERAL ? 1 : 2));
}

wlm_status wlmi_matrix_market_parse(wlmi_lines *lines, const wlmi_text_head *head, const wlmi_size_check *check,
                                    wlmi_csr_host *out) {
  reader r = {.lines = lines};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(read_banner(&r, head->line));
  WLM_TRY(read_size(&r));
  WLM_TRY(check_size(&r, check));
  r.entries.has_values = r.field != FIELD_PATTERN;
  WLM_TRY(read_entries(&r));
  status = wlmi_entries_to_csr(&r.entries, lines->path, r.rows, r.cols, out);
done:
  wlmi_entries_release(&r.entries);
  return status;
}
