/* A twin has the published rows, non-zeros, CV and longest row of its graph; degrees.c makes the row lengths. Vertices
 * are divided into communities. columns.c draws most columns of a row from its own community, each with a probability
 * in proportion to the length of the row with the same number. A scaled twin keeps mean and CV; its longest row shrinks
 * by the square root of the scale, which keeps that row's part in the CV, as long as the CV stays within reach. */
#include "core/synth/twin.h"

#include <stddef.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/csr/lines.h"
#include "core/problem/size.h"
#include "core/synth/columns.h"
#include "core/synth/degrees.h"

enum { BILLION = 1000000000, FRACTION_DIGITS = 9, MILLION = 1000000 };
enum { STREAM_LENGTHS = 11, STREAM_NAMES = 12 };

static const struct graph {
  const char *name;
  int64_t rows, nnz, longest;
  int64_t cv;    /* in millionths */
  int64_t least; /* 1 if every vertex has an edge, as in undirected edge lists */
} graphs[] = {
    {"reddit", 232965, 114615892, 21657, 1625688, 1},    {"proteins", 132534, 79122504, 7750, 1041000, 1},
    {"products", 2449029, 123718152, 17481, 1898461, 1}, {"arxiv", 169343, 2315598, 13161, 5000000, 1},
    {"youtube", 1157828, 5975248, 28754, 9737837, 1},    {"roadnet-ca", 1971281, 5533214, 12, 358144, 1},
    {"web-google", 916428, 5105039, 456, 1176991, 0},    {"arxiv-directed", 169343, 1166243, 436, 1289323, 0},
};

/* ---- the name ---- */

enum { TWIN = 1, UNIFORM = 2, SYNTH = 4 }; /* kinds, also as a set */

typedef struct request {
  int kind;
  int64_t scale, local, density, cv; /* in billionths */
  int64_t seed, communities, scattered, rows, cols, d, longest;
  const struct graph *graph; /* of a twin */
} request;

static const char *const numberings[] = {"contiguous", "scattered"};

typedef enum option_kind { OPTION_INTEGER, OPTION_FRACTION, OPTION_NUMBERING } option_kind;
static const struct option {
  const char *name;
  int kinds; /* that have it */
  option_kind kind;
  size_t offset;
  int64_t low, high;
} options[] = {
    {"scale", TWIN, OPTION_FRACTION, offsetof(request, scale), 1, BILLION},
    {"communities", TWIN | SYNTH, OPTION_INTEGER, offsetof(request, communities), 1, INT32_MAX},
    {"local", TWIN | SYNTH, OPTION_FRACTION, offsetof(request, local), 0, BILLION},
    {"numbering", TWIN | SYNTH, OPTION_NUMBERING, offsetof(request, scattered), 0, 1},
    {"rows", UNIFORM | SYNTH, OPTION_INTEGER, offsetof(request, rows), 0, INT32_MAX},
    {"cols", UNIFORM | SYNTH, OPTION_INTEGER, offsetof(request, cols), 0, INT32_MAX},
    {"d", UNIFORM, OPTION_INTEGER, offsetof(request, d), 0, INT32_MAX},
    {"d", SYNTH, OPTION_FRACTION, offsetof(request, density), 0, INT64_MAX},
    {"cv", SYNTH, OPTION_FRACTION, offsetof(request, cv), 0, INT64_C(1000) * BILLION},
    {"longest", SYNTH, OPTION_INTEGER, offsetof(request, longest), 0, INT32_MAX},
    {"seed", TWIN | UNIFORM | SYNTH, OPTION_INTEGER, offsetof(request, seed), 0, INT64_MAX},
};

/* digits[.digits] as billionths; more than nine digits behind the point are refused. */
static int parse_fraction(const char *text, int64_t *value) {
  int64_t whole;
  const char *at = *text == '-' || *text == '+' ? NULL : wlmi_parse_int64(text, &whole);
  if (!at || whole > MILLION) return 0;
  *value = whole * BILLION;
  if (*at == 0) return 1;
  if (*at++ != '.') return 0;
  int64_t unit = BILLION / 10;
  for (; *at >= '0' && *at <= '9' && unit > 0; at++, unit /= 10) *value += (*at - '0') * unit;
  return *at == 0;
}

static int parse_option(option_kind kind, const char *text, int64_t *value) {
  if (kind == OPTION_FRACTION) return parse_fraction(text, value);
  if (kind == OPTION_INTEGER) {
    const char *end = wlmi_parse_int64(text, value);
    return end && *end == 0;
  }
  for (int i = 0; i < 2; i++)
    if (!strcmp(text, numberings[i])) {
      *value = i;
      return 1;
    }
  return 0;
}

static const char *options_of(int kind) {
  if (kind == UNIFORM) return "rows=R,d=D,cols=C,seed=N (whole numbers)";
  if (kind == TWIN)
    return "scale=X (above 0, up to 1), seed=N, communities=N, local=X (0 to 1), numbering=scattered or contiguous";
  return "rows=R,d=D,cv=X (up to 1000),cols=C,longest=L,seed=N,communities=N,local=X (0 to 1),numbering=scattered or "
         "contiguous";
}

static wlm_status set_option(request *r, const char *whole, const char *name, const char *text) {
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    const struct option *o = &options[i];
    int64_t value;
    if (strcmp(name, o->name) || !(o->kinds & r->kind)) continue;
    if (!text || !parse_option(o->kind, text, &value) || value < o->low || value > o->high) break;
    memcpy((char *)r + o->offset, &value, sizeof value);
    return WLM_OK;
  }
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: '%s%s%s' is not understood; options are %s", whole, name,
                   text ? "=" : "", text ? text : "", options_of(r->kind));
}

/* Cuts `text` at its next comma and returns the piece; *text moves behind it, to NULL after the last piece. */
static char *next_piece(char **text) {
  char *piece = *text, *comma = strchr(piece, ',');
  if (comma) *comma = 0;
  *text = comma ? comma + 1 : NULL;
  return piece;
}

static wlm_status parse_options(const char *whole, char *text, request *r) {
  wlm_status status = WLM_OK;
  while (text && status == WLM_OK) {
    char *name = next_piece(&text), *value = strchr(name, '=');
    if (value) *value++ = 0;
    status = set_option(r, whole, name, value);
  }
  return status;
}

/* ---- making ---- */

static void shuffle(int32_t *items, int64_t count, uint64_t seed, uint64_t stream) {
  wlmi_random random = wlmi_random_for(seed, stream, 0);
  for (int64_t i = count - 1; i > 0; i--) {
    int64_t other = wlmi_random_below(&random, i + 1);
    int32_t item = items[i];
    items[i] = items[other];
    items[other] = item;
  }
}

static int64_t square_root(int64_t n) {
  int64_t root = 0;
  for (int64_t bit = INT64_C(1) << 31; bit > 0; bit >>= 1)
    if ((root + bit) <= n / (root + bit)) root += bit;
  return root;
}

static int64_t scaled(int64_t x, int64_t scale) { return (int64_t)(((__int128)x * scale + BILLION / 2) / BILLION); }

static wlmi_degrees_wanted wanted_for(const struct graph *g, int64_t scale) {
  wlmi_degrees_wanted w = {scaled(g->rows, scale), scaled(g->nnz, scale), g->longest, g->cv, g->least};
  if (w.rows < 1) return w;
  /* a CV needs longest > mean (1 + cv^2); four times that leaves room for the other rows */
  int64_t reach = (int64_t)((__int128)4 * w.nnz * ((__int128)MILLION * MILLION + g->cv * g->cv) / w.rows /
                            ((__int128)MILLION * MILLION));
  int64_t shrunk = square_root(scaled(g->longest * g->longest, scale));
  int64_t longest = shrunk > reach ? shrunk : reach;
  if (longest < w.longest) w.longest = longest;
  if (w.longest > w.rows) w.longest = w.rows;
  return w;
}

/* Rows of these lengths in an order that the seed gives. In a square matrix a column is as likely as its row is long.
 */
static wlm_status make_matrix(const wlmi_degrees_wanted *wanted, int64_t cols, const request *r, wlmi_csr_host *out) {
  int64_t rows = wanted->rows, *weights = NULL;
  int32_t *degrees = NULL, *names = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(rows, sizeof *degrees, "row lengths", (void **)&degrees));
  WLM_TRY(wlmi_alloc_array(cols + 1, sizeof *weights, "column weights", (void **)&weights));
  WLM_TRY(wlmi_degrees_make(wanted, degrees));
  shuffle(degrees, rows, (uint64_t)r->seed, STREAM_LENGTHS);
  weights[0] = 0;
  for (int64_t i = 0; i < cols; i++) weights[i + 1] = weights[i] + (rows == cols ? degrees[i] : 1);
  if (r->scattered) {
    WLM_TRY(wlmi_alloc_array(rows, sizeof *names, "row numbers", (void **)&names));
    for (int64_t i = 0; i < rows; i++) names[i] = (int32_t)i;
    shuffle(names, rows, (uint64_t)r->seed, STREAM_NAMES);
  }
  int64_t communities = r->communities < rows ? r->communities : rows;
  WLM_TRY(wlmi_columns_make(
      &(wlmi_columns_wanted){rows, cols, degrees, weights, names, communities, r->local, (uint64_t)r->seed}, out));
done:
  wlmi_free(degrees);
  wlmi_free(weights);
  wlmi_free(names);
  return status;
}

static wlm_status make_graph(const request *r, wlmi_csr_host *out) {
  const wlmi_degrees_wanted wanted = wanted_for(r->graph, r->scale);
  if (wanted.rows < 1 || wanted.nnz / wanted.rows > wanted.rows / 2)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "this scale leaves %lld rows for %lld entries; use a larger one",
                     (long long)wanted.rows, (long long)wanted.nnz);
  return make_matrix(&wanted, wanted.rows, r, out);
}

/* A CV of c needs a longest row above mean (1 + c^2); four times that leaves room for the other rows. But this one row
 * must not be more than half of the sum of squares, which is mean^2 rows c^2. */
static wlm_status make_synth(const request *r, wlmi_csr_host *out) {
  const int64_t cols = r->cols < 0 ? r->rows : r->cols, cv = r->cv / (BILLION / MILLION);
  if (r->rows < 1 || r->density < 0 || r->cv < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rows=R (at least 1), d=D and cv=X must be given");
  if (r->cols >= 0 && r->cols != r->rows && (r->communities > 1 || r->scattered))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "communities and numbering are for square matrices");
  const __int128 nnz = (__int128)r->rows * r->density / BILLION, mean = (nnz + r->rows - 1) / r->rows;
  if (nnz > INT32_MAX || 2 * mean > cols)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "d must leave at most %d entries and half of the %lld columns",
                     INT32_MAX, (long long)cols);
  const __int128 one = (__int128)MILLION * MILLION;
  const __int128 roomy = 4 * nnz * (one + (__int128)cv * cv) / r->rows / one;
  const __int128 modest = nnz * cv / MILLION / square_root(2 * r->rows);
  __int128 longest = roomy < modest ? roomy : modest;
  if (longest < mean) longest = mean;
  if (longest > nnz) longest = nnz;
  if (longest > cols) longest = cols;
  if (r->longest > cols)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "longest=L must not be above the %lld columns", (long long)cols);
  if (r->longest >= 0) longest = r->longest;
  const int64_t least = cv || r->longest >= 0 ? 0 : (int64_t)(nnz / r->rows);
  return make_matrix(&(wlmi_degrees_wanted){r->rows, (int64_t)nnz, (int64_t)longest, cv, least}, cols, r, out);
}

static wlm_status make_uniform(const request *r, wlmi_csr_host *out) {
  int64_t cols = r->cols < 0 ? r->rows : r->cols, *weights = NULL;
  int32_t *degrees = NULL;
  wlm_status status;
  if (r->rows < 0 || r->d < 0) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "rows=R and d=D must both be given");
  if (r->d > cols)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "d=%lld distinct columns of %lld; use a smaller d", (long long)r->d,
                     (long long)cols);
  WLM_TRY(wlmi_alloc_array(r->rows, sizeof *degrees, "row lengths", (void **)&degrees));
  WLM_TRY(wlmi_alloc_array(cols + 1, sizeof *weights, "column weights", (void **)&weights));
  for (int64_t i = 0; i < r->rows; i++) degrees[i] = (int32_t)r->d;
  for (int64_t i = 0; i <= cols; i++) weights[i] = i;
  WLM_TRY(
      wlmi_columns_make(&(wlmi_columns_wanted){r->rows, cols, degrees, weights, NULL, 1, 0, (uint64_t)r->seed}, out));
done:
  wlmi_free(degrees);
  wlmi_free(weights);
  return status;
}

static const struct graph *find_graph(const char *name) {
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
    if (!strcmp(name, graphs[i].name)) return &graphs[i];
  return NULL;
}

static const struct {
  const char *prefix;
  request defaults;
  wlm_status (*make)(const request *r, wlmi_csr_host *out);
} kinds[] = {
    {"twin:", {TWIN, BILLION, BILLION / 10 * 7, -1, -1, 1, 50, 1, -1, -1, -1, -1, NULL}, make_graph},
    {"uniform:", {UNIFORM, BILLION, 0, -1, -1, 1, 1, 0, -1, -1, -1, -1, NULL}, make_uniform},
    {"synth:", {SYNTH, BILLION, 0, -1, -1, 1, 1, 0, -1, -1, -1, -1, NULL}, make_synth},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The request does not point into `name`. */
static wlm_status parse(const char *name, request *r, int *kind) {
  char *copy = wlmi_strdup(name), *text = copy;
  wlm_status status;
  if (!copy) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s", name);
  *kind = 0;
  while (*kind < KINDS && strncmp(text, kinds[*kind].prefix, strlen(kinds[*kind].prefix))) ++*kind;
  *r = kinds[*kind < KINDS ? *kind : 0].defaults;
  if (*kind < KINDS) text += strlen(kinds[*kind].prefix);
  if (r->kind == TWIN) r->graph = find_graph(next_piece(&text));
  if (*kind == KINDS || (r->kind == TWIN && !r->graph))
    WLM_TRY(wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                      "%s: no such twin; there are twin:reddit, proteins, products, arxiv, arxiv-directed, youtube, "
                      "roadnet-ca, web-google, uniform:rows=R,d=D and synth:rows=R,d=D,cv=X",
                      name));
  status = parse_options(name, text, r);
done:
  wlmi_free(copy);
  return status;
}

wlm_status wlmi_twin_size(const char *name, int64_t *rows, int64_t *cols, int64_t *nnz) {
  request r = {0};
  int kind = 0;
  WLM_CHECK(parse(name, &r, &kind));
  if (r.kind == TWIN) r.rows = scaled(r.graph->rows, r.scale);
  *rows = r.rows;
  *cols = r.cols < 0 ? r.rows : r.cols;
  const __int128 wanted = r.kind == TWIN      ? scaled(r.graph->nnz, r.scale)
                          : r.kind == UNIFORM ? (__int128)r.rows * r.d
                                              : (__int128)r.rows * r.density / BILLION;
  *nnz = wanted < WLMI_MOST_SIZE ? (int64_t)wanted : WLMI_MOST_SIZE;
  if (r.rows >= 0 && wanted >= 0) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: rows=R and d=D must be given", name);
}

wlm_status wlmi_twin_make(const char *name, wlmi_csr_host *out) {
  request r = {0};
  int kind = 0;
  *out = (wlmi_csr_host){0};
  WLM_CHECK(parse(name, &r, &kind));
  wlm_status status = kinds[kind].make(&r, out);
  if (status != WLM_OK) wlmi_fail_in(status, "%s", name);
  return status;
}
