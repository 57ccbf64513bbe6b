#include "core/csr/formats.h"

#include <ctype.h>
#include <string.h>

#include "core/csr/lines.h"

enum { MOST_NUMBER = INT32_MAX - 1, FIRST_CHECK = 1 << 16 };

typedef struct reader {
  wlmi_lines *lines;
  const wlmi_size_check *check;
  wlmi_entries entries;
  int64_t largest;    /* source or target; -1 = none */
  int64_t next_check; /* count of entries */
} reader;

/* ---- lines ---- */

static int is_header(const char *line) { return isalpha((unsigned char)*line) || *line == '"' || *line == '_'; }

static char separator_of(const char *line) {
  const char *found = strpbrk(line, ",;");
  return found ? *found : 0;
}

/* Moves behind a separator. A second one, or one at the end of the line, is a number that is missing. */
static wlm_status skip_separator(const reader *r, const char **at) {
  const char separator = r->lines->separator;
  *at = wlmi_skip_blanks(*at);
  if (!separator || !**at) return WLM_OK;
  if (**at != separator)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE, "'%.*s' where '%c' is expected, as in the first edge; correct it",
                           wlmi_word_size(r->lines, *at), *at, separator);
  ++*at;
  return WLM_OK;
}

/* Finds the separator, and whether there are weights, in the first edge. */
static wlm_status learn_form(reader *r, const char *line) {
  int64_t number;
  r->lines->separator = separator_of(line);
  WLM_CHECK(wlmi_words_int(r->lines, &line, "source", 0, MOST_NUMBER, &number));
  WLM_CHECK(skip_separator(r, &line));
  WLM_CHECK(wlmi_words_int(r->lines, &line, "target", 0, MOST_NUMBER, &number));
  r->entries.has_values = *wlmi_skip_blanks(line) != 0;
  return WLM_OK;
}

/* ---- edges ---- */

static wlm_status check_size(reader *r) {
  const int64_t size = r->largest + 1;
  if (!r->check) return WLM_OK;
  r->next_check = r->entries.count < FIRST_CHECK ? FIRST_CHECK : 2 * r->entries.count;
  return r->check->fits(r->check->user, size, size, r->entries.count);
}

static wlm_status read_edge(reader *r, const char *at) {
  int64_t source, target;
  float weight = 1.0f;
  WLM_CHECK(wlmi_words_int(r->lines, &at, "source", 0, MOST_NUMBER, &source));
  WLM_CHECK(skip_separator(r, &at));
  WLM_CHECK(wlmi_words_int(r->lines, &at, "target", 0, MOST_NUMBER, &target));
  if (r->entries.has_values) {
    WLM_CHECK(skip_separator(r, &at));
    WLM_CHECK(wlmi_words_float(r->lines, &at, "weight", &weight));
  }
  WLM_CHECK(wlmi_words_end(r->lines, at));
  if (source > r->largest) r->largest = source;
  if (target > r->largest) r->largest = target;
  const wlm_status status = wlmi_entries_add(&r->entries, INT64_MAX, source, target, weight);
  if (status != WLM_OK) wlmi_fail_in(status, "%s", r->lines->path);
  return status;
}

static wlm_status read_edges(reader *r) {
  const char *at;
  WLM_CHECK(wlmi_words_line(r->lines, "#%", &at));
  if (at && is_header(at)) WLM_CHECK(wlmi_words_line(r->lines, "#%", &at));
  if (!at)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "the file %s; give a Matrix Market file, an edge list or a matrix of scipy.sparse.save_npz",
                           r->lines->number ? "has no edges" : "is empty");
  WLM_CHECK(learn_form(r, at));
  while (at) {
    WLM_CHECK(read_edge(r, at));
    if (r->entries.count >= r->next_check) WLM_CHECK(check_size(r));
    WLM_CHECK(wlmi_words_line(r->lines, "#%", &at));
  }
  return check_size(r);
}

wlm_status wlmi_edge_list_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out) {
  reader r = {.lines = lines, .check = check, .largest = -1, .next_check = FIRST_CHECK};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(read_edges(&r));
  status = wlmi_entries_to_csr(&r.entries, lines->path, r.largest + 1, r.largest + 1, out);
done:
  wlmi_entries_release(&r.entries);
  return status;
}
