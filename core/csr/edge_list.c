#include <string.h>

#include "core/csr/formats.h"

typedef enum role { SOURCE, TARGET, WEIGHT, ROLES } role; /* of a column */

enum { MOST_NUMBER = INT32_MAX - 1, FIRST_CHECK = 1 << 16 };

typedef struct reader {
  wlmi_lines *lines;
  const wlmi_size_check *check;
  wlmi_entries entries;
  int columns, is_named;
  role roles[ROLES];  /* of the columns */
  int64_t first_line; /* where the first edge is */
  int64_t largest;    /* source or target; -1 = none */
  int64_t next_check; /* count of entries */
} reader;

/* ---- columns ---- */

static const struct {
  const char *what, *names; /* in lower case, without other characters than letters and digits */
} roles[ROLES] = {
    {"source", " source src from fromnodeid fromnode fromid sourceid sourcenode row u i node1 id1 nodeid1 "},
    {"target",
     " target tgt dst dest destination to tonodeid tonode toid targetid targetnode col column v j node2 id2 "
     "nodeid2 "},
    {"weight", " weight w wt value val data x edgeweight weights "},
};

static int is_digit(char c) { return (unsigned char)(c - '0') < 10; }
static int is_letter(char c) { return (unsigned char)((c | 0x20) - 'a') < 26; }

/* The role that a name stands for; ROLES = none. `text` has `size` bytes and may have quotes and blanks. */
static role role_of(const char *text, size_t size) {
  char name[32] = " ";
  size_t length = 1;
  for (size_t i = 0; i < size && length < sizeof name - 2; i++)
    if (is_letter(text[i]) || is_digit(text[i])) name[length++] = (char)(text[i] | 0x20);
  memcpy(name + length, " ", 2);
  for (role r = SOURCE; r < ROLES; r++)
    if (length > 1 && strstr(roles[r].names, name)) return r;
  return ROLES;
}

static char separator_of(const char *line) {
  const char *found = strpbrk(line, ",;");
  return found ? *found : 0;
}

/* The next word of a line, which `separator` (0 = blanks) ends; NULL behind the last one. */
static const char *next_word(const char **at, char separator, size_t *size) {
  const char ends[] = {separator ? separator : ' ', separator ? 0 : '\t', 0}, *word = *at;
  if (!word) return NULL;
  word = wlmi_skip_blanks(word);
  *size = strcspn(word, ends);
  *at = word[*size] ? word + *size + 1 : NULL;
  if (!separator && *at && !*(*at = wlmi_skip_blanks(*at))) *at = NULL; /* blanks at the end of a line are no word */
  return word;
}

/* Takes the roles of the columns from a line of names. Returns the first word that is none of them or that repeats one;
 * NULL if all are. */
static const char *learn_names(reader *r, const char *line, size_t *size) {
  const char *at = line, *word, separator = separator_of(line);
  int seen[ROLES + 1] = {0};
  for (r->columns = 0; (word = next_word(&at, separator, size)); r->columns++) {
    const role found = role_of(word, *size);
    if (found == ROLES || seen[found]++) return word;
    r->roles[r->columns] = found;
  }
  *size = strlen(line);
  return seen[SOURCE] && seen[TARGET] ? NULL : line;
}

/* A line before the edges that has letters, and does not begin as a number, must name the columns. */
static int is_header(const char *line) {
  if (is_digit(*line) || strchr("+-.", *line)) return 0;
  for (; *line; line++)
    if (is_letter(*line) || *line == '"') return 1;
  return 0;
}

/* Sets *line to the first edge. */
static wlm_status read_header(reader *r, const wlmi_text_head *head, const char **line) {
  size_t size;
  *line = head->line;
  if (!*line || !is_header(*line)) return WLM_OK;
  const char *wrong = learn_names(r, *line, &size);
  if (wrong)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "a first line of names with '%.*s'; name the columns source, target and weight, or remove "
                           "the line",
                           size < 40 ? (int)size : 40, wrong);
  r->is_named = 1;
  return wlmi_words_line(r->lines, "#%", line);
}

static int count_columns(const reader *r, const char *line) {
  int count = 0;
  for (size_t size; next_word(&line, r->lines->separator, &size);) count++;
  return count;
}

/* Finds the separator and the columns by the first edge. A comment before it may name them, too. */
static wlm_status learn_form(reader *r, const wlmi_text_head *head, const char *line) {
  r->lines->separator = separator_of(line);
  r->first_line = r->lines->number;
  const int columns = count_columns(r, line);
  size_t size;
  if (columns < 2 || columns > ROLES)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "%d column%s; an edge is 'source target' or 'source target weight', and adjacency lists, as "
                           "of METIS, are not read",
                           columns, columns == 1 ? "" : "s");
  if (r->is_named && columns != r->columns)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE, "%d columns with %d names; correct the names", columns, r->columns);
  if (!r->is_named)
    r->is_named = !learn_names(r, head->comment + strspn(head->comment, "#% \t"), &size) && columns == r->columns;
  for (role c = SOURCE; c < ROLES && !r->is_named; c++) r->roles[c] = c;
  r->columns = columns;
  r->entries.has_values = columns == ROLES;
  return WLM_OK;
}

/* ---- edges ---- */

static wlm_status check_size(reader *r) {
  const int64_t size = r->largest + 1;
  if (!r->check) return WLM_OK;
  r->next_check = r->entries.count < FIRST_CHECK ? FIRST_CHECK : 2 * r->entries.count;
  return r->check->fits(r->check->user, size, size, r->entries.count);
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

static wlm_status check_columns(const reader *r, const char *line) {
  const int columns = count_columns(r, line);
  if (columns == r->columns) return WLM_OK;
  return wlmi_words_fail(
      r->lines, WLM_ERR_PARSE,
      "%d column%s where the first edge has %d; give all edges alike (Matrix Market needs its banner, "
      "and adjacency lists, as of METIS, are not read)",
      columns, columns == 1 ? "" : "s", r->columns);
}

static wlm_status read_edge(reader *r, const char *line) {
  int64_t ends[2] = {0}; /* source, target */
  float weight = 1;
  const char *at = line;
  for (int c = 0; c < r->columns; c++) {
    const role is = r->roles[c];
    if (c) WLM_CHECK(skip_separator(r, &at));
    if (!*at) WLM_CHECK(check_columns(r, line));
    if (is == WEIGHT)
      WLM_CHECK(wlmi_words_float(r->lines, &at, "weight", &weight));
    else
      WLM_CHECK(wlmi_words_int(r->lines, &at, roles[is].what, 0, MOST_NUMBER, &ends[is]));
    if (is != WEIGHT && ends[is] > r->largest) r->largest = ends[is];
  }
  if (*wlmi_skip_blanks(at)) WLM_CHECK(check_columns(r, line));
  WLM_CHECK(wlmi_words_end(r->lines, at));
  const wlm_status status = wlmi_entries_add(&r->entries, INT64_MAX, ends[SOURCE], ends[TARGET], weight);
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s", r->lines->path);
}

/* Whether no source of entry 1 and later is beyond `rows`, and no target beyond `cols`, counted from 0 or 1. */
static int are_within(const wlmi_entries *e, int64_t rows, int64_t cols) {
  int64_t least = 1;
  for (int64_t i = 1; i < e->count; i++) least = e->row[i] && e->col[i] ? least : 0;
  for (int64_t i = 1; i < e->count; i++)
    if (e->row[i] >= rows + least || e->col[i] >= cols + least) return 0;
  return 1;
}

/* Whether the first line has the sizes of the others: their number is its last one (Matrix Market, or nodes and edges),
 * or its first one, with a line for each node (METIS, where a third number of 0, 10 or 11 says how many of the three in
 * a line are neighbours). */
static int has_sizes(const wlmi_entries *e) {
  const int64_t lines = e->count - 1, first = e->row[0], second = e->col[0];
  if (lines < 1) return 0;
  if (!e->value) return second == lines && are_within(e, first, first);
  const float third = e->value[0];
  const int neighbours = third == 0 ? 3 : third == 10 ? 2 : third == 11 ? 1 : 0;
  if (second && first == lines && 2 * second == neighbours * lines) return are_within(e, INT32_MAX, first);
  return (double)third == (double)lines && are_within(e, first, second);
}

static wlm_status check_first(const reader *r) {
  if (r->is_named || !has_sizes(&r->entries)) return WLM_OK;
  return wlmi_fail(WLM_ERR_PARSE,
                   "%s:%lld: this line seems to give the sizes of those after it, as in METIS or in Matrix Market "
                   "without its banner; add the banner, write METIS as an edge list, remove the line, or put a line "
                   "'source target%s' before it",
                   r->lines->path, (long long)r->first_line, r->entries.value ? " weight" : "");
}

static wlm_status read_edges(reader *r, const wlmi_text_head *head) {
  const char *line;
  WLM_CHECK(read_header(r, head, &line));
  if (!line)
    return wlmi_words_fail(r->lines, WLM_ERR_PARSE,
                           "the file %s; give a Matrix Market file, an edge list or a matrix of scipy.sparse.save_npz",
                           r->lines->number ? "has no edges" : "is empty");
  WLM_CHECK(learn_form(r, head, line));
  while (line) {
    WLM_CHECK(read_edge(r, line));
    if (r->entries.count >= r->next_check) WLM_CHECK(check_size(r));
    WLM_CHECK(wlmi_words_line(r->lines, "#%", &line));
  }
  WLM_CHECK(check_first(r));
  return check_size(r);
}

wlm_status wlmi_edge_list_parse(wlmi_lines *lines, const wlmi_text_head *head, const wlmi_size_check *check,
                                wlmi_csr_host *out) {
  reader r = {.lines = lines, .check = check, .largest = -1, .next_check = FIRST_CHECK};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(read_edges(&r, head));
  status = wlmi_entries_to_csr(&r.entries, lines->path, r.largest + 1, r.largest + 1, out);
done:
  wlmi_entries_release(&r.entries);
  return status;
}
