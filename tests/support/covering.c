/* A greedy algorithm: it walks over all problems in a seeded order, in several rounds. In each round a group of
 * variants takes the problems that add at least a certain number of combinations not covered yet; the number falls from
 * round to round, at last to one. Only problems that a group serves are considered, so this file has no rules of
 * validity. For each problem it takes the variant whose parameter values were used least.
 *
 * A group is a family; for the full set every variant is then a group as well. */
#include "support/covering.h"
#include "support/asserts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "support/asserts.h"
#include "support/covering_kinds.h"
#include "support/covering_messages.h"
#include "support/defaults.h"
#include "support/folder.h"
#include "support/shapes.h"

/* The axes of a problem. All combinations of the first COMBINED axes are problems; values of the other axes are
 * drawn. Each pair of values of two of the first CROSSED axes must be tested with some group, if it can occur. In
 * addition each group must be tested with every value that it serves: a family on the crossed axes and on the cells,
 * which combine the type of B and C with each property that gives another kernel; a variant on all axes except the
 * types, which are drawn, and the operator, whose message and reduction are axes themselves. */
enum { AXIS_OP, AXIS_ROWPTR, AXIS_VALUES, AXIS_EMPTY, AXIS_SAMPLING, COMBINED };
enum { AXIS_TYPES = COMBINED, AXIS_COLIND, AXIS_ARG, AXIS_HEADS, CROSSED };
enum { AXIS_MESSAGE = CROSSED, AXIS_REDUCE, AXIS_N, AXIS_S, CELLS };
enum { CELL_MESSAGE = CELLS, CELL_REDUCE, CELL_INDICES, CELL_ARG, CELL_HEADS, AXES };
enum { MESSAGES = 8, REDUCTIONS = 5, OPS = MESSAGES * REDUCTIONS, NORMS = 3, SAMPLINGS = 1 + 3 * NORMS, TYPES = 4 };
static const int axis_sizes[COMBINED] = {OPS, 2, 2, 2, SAMPLINGS};
/* {type of B and C, type of A's values}; type_draws has the types that most callers use more often. */
static const wlm_type types[][2] = {{WLM_F32, WLM_F32}, {WLM_F16, WLM_F16}, {WLM_BF16, WLM_BF16},
                                    {WLM_F64, WLM_F64}, {WLM_F16, WLM_F32}, {WLM_BF16, WLM_F32}};
static const int type_draws[] = {0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5};
/* The number of values per edge, where the message reads them; N is chosen as a multiple. */
static const int64_t heads[] = {1, 2, 3, 8};
static const int heads_draws[] = {0, 0, 0, 1, 2, 3};
/* How often each problem occurs, with different N and S, so that a family for few N (in the full set a variant for
 * one N) is tested with every operator. */
enum { COPIES = 2, FULL_COPIES = 8 };
enum { PAIRS = CROSSED * (CROSSED - 1) / 2, SPECS = OPS * 2 * 2 * 2 * SAMPLINGS };

static const int64_t widths_n[] = {1, 2, 4, 7, 8, 15, 16, 31, 32, 33, 40, 64, 66, 100, 128, 256, 300};
static const int64_t widths_s[] = {8, 32, 100, 9, 577, 64, 2304};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
enum { NO_S = COUNT(widths_s) }; /* the value of AXIS_S without sampling */

enum { MAX_VARIANTS = 2048, MAX_GROUPS = MAX_VARIANTS, MAX_VALUES = 512, MAX_PARAMETERS = 16 };
enum { VALUE_NAME = WLMI_VARIANT_NAME, SLOTS = 4 * MAX_VARIANTS };

struct value {
  /* "cf=2"; also all values of a variant together, "/cf=2,rows=4", so that variants take turns */
  char text[VALUE_NAME];
  int64_t uses;
};

typedef struct group {
  char name[VALUE_NAME];
  unsigned char met[AXES][OPS];
  int has_own; /* it has a problem with user-defined expressions */
  int value_count;
  struct value values[MAX_VALUES];
} group;

/* A variant that occurs as a candidate of any problem. Candidates point to it, so names are compared only once. */
typedef struct variant {
  char name[WLMI_VARIANT_NAME];
  group *group;
  int value_count;
  struct value *values[1 + MAX_PARAMETERS]; /* of the group: all values together, then each one */
} variant;

typedef struct problem {
  wlmi_spec spec;
  int axes[AXES];
  int own;              /* as in covering_entry */
  variant **candidates; /* candidates of one family are neighbours */
  int64_t count;
} problem;

typedef struct maker {
  wlmi_generator *generator;
  const wlmi_limits *limits;
  int full;
  problem *problems;
  int64_t problem_count;
  variant *variants;
  int variant_count;
  variant *slots[SLOTS]; /* a hash table of the variants by name */
  group *groups;
  int group_count;
  int by_variant; /* each variant is a group */
  unsigned char met[PAIRS][OPS * OPS];
  test_random random;
  covering *out;
} maker;

/* ---- problems ------------------------------------------------------------------------------------ */

static void fill_axes(maker *m, int number, int axes[AXES]) {
  for (int axis = 0; axis < COMBINED; number /= axis_sizes[axis++]) axes[axis] = number % axis_sizes[axis];
  axes[AXIS_TYPES] = type_draws[test_draw(&m->random, COUNT(type_draws))];
  axes[AXIS_COLIND] = (int)test_draw(&m->random, 2);
  axes[AXIS_MESSAGE] = axes[AXIS_OP] / REDUCTIONS;
  axes[AXIS_REDUCE] = axes[AXIS_OP] % REDUCTIONS;
  const int has_positions = axes[AXIS_REDUCE] == WLM_MAX || axes[AXIS_REDUCE] == WLM_MIN;
  axes[AXIS_ARG] = has_positions ? (int)test_draw(&m->random, 3) : 0;
  axes[AXIS_HEADS] = heads_draws[test_draw(&m->random, COUNT(heads_draws))];
  if (!axes[AXIS_VALUES] || axes[AXIS_MESSAGE] == WLM_COPY_B) axes[AXIS_HEADS] = 0;
  do axes[AXIS_N] = (int)test_draw(&m->random, COUNT(widths_n));
  while (widths_n[axes[AXIS_N]] % heads[axes[AXIS_HEADS]]);
  axes[AXIS_S] = (int)test_draw(&m->random, COUNT(widths_s));
  if (!axes[AXIS_SAMPLING]) axes[AXIS_S] = NO_S;
  const int with[AXES - CELLS] = {axes[AXIS_MESSAGE], axes[AXIS_REDUCE], axes[AXIS_ROWPTR] * 2 + axes[AXIS_COLIND],
                                  axes[AXIS_ARG], axes[AXIS_HEADS] > 0};
  for (int i = 0; i < AXES - CELLS; i++) axes[CELLS + i] = with[i] * TYPES + (int)types[axes[AXIS_TYPES]][0];
}

static wlm_status spec_of(const int axes[AXES], wlmi_spec *spec) {
  wlm_problem p = PROBLEM(.n = widths_n[axes[AXIS_N]], .heads = heads[axes[AXIS_HEADS]],
                          .message = (wlm_message)axes[AXIS_MESSAGE], .reduce = (wlm_reduce)axes[AXIS_REDUCE],
                          .dense_type = types[axes[AXIS_TYPES]][0], .empty = (wlm_empty)axes[AXIS_EMPTY],
                          .want_argmax = axes[AXIS_ARG] > 0, .argmax_type = axes[AXIS_ARG] == 2 ? WLM_I64 : WLM_I32);
  wlm_csr csr = CSR(.value_type = types[axes[AXIS_TYPES]][1], .rowptr_type = (wlm_index)axes[AXIS_ROWPTR],
                    .colind_type = (wlm_index)axes[AXIS_COLIND],
                    .values = axes[AXIS_VALUES] ? &csr : NULL /* the spec depends only on whether there are values */);
  if (axes[AXIS_SAMPLING]) {
    p.sampling.sample = (wlm_sample)(1 + (axes[AXIS_SAMPLING] - 1) / NORMS);
    p.sampling.norm = (wlm_sample_norm)((axes[AXIS_SAMPLING] - 1) % NORMS);
    p.sampling.width = widths_s[axes[AXIS_S]];
  }
  return wlmi_spec_make(&p, &csr, spec);
}

/* ---- groups and their parameter values ------------------------------------------------------------- */

static group *group_of(maker *m, const char *variant) {
  size_t size = strcspn(variant, m->by_variant ? "" : "/");
  for (int i = 0; i < m->group_count; i++)
    if (strlen(m->groups[i].name) == size && !strncmp(m->groups[i].name, variant, size)) return &m->groups[i];
  if (m->group_count == MAX_GROUPS || size >= VALUE_NAME) abort();
  group *g = &m->groups[m->group_count++];
  memcpy(g->name, variant, size);
  return g;
}

static void add_value(variant *v, const char *text, size_t size) {
  group *g = v->group;
  int i = 0;
  while (i < g->value_count && (strlen(g->values[i].text) != size || strncmp(g->values[i].text, text, size))) i++;
  if (i == MAX_VALUES || size >= VALUE_NAME || v->value_count > MAX_PARAMETERS) abort();
  if (i == g->value_count) memcpy(g->values[g->value_count++].text, text, size);
  v->values[v->value_count++] = &g->values[i];
}

/* Sets the variant's group, which it creates if needed. */
static void join_group(maker *m, variant *v) {
  const char *at = v->name + strcspn(v->name, "/");
  v->group = group_of(m, v->name);
  v->value_count = 0;
  add_value(v, at, strlen(at));
  while (*at) {
    size_t size = strcspn(++at, ",");
    add_value(v, at, size);
    at += size;
  }
}

static variant *variant_of(maker *m, const char *name) {
  size_t slot = wlmi_hash_text(name).low % SLOTS;
  for (; m->slots[slot]; slot = (slot + 1) % SLOTS)
    if (!strcmp(m->slots[slot]->name, name)) return m->slots[slot];
  if (m->variant_count == MAX_VARIANTS || strlen(name) >= WLMI_VARIANT_NAME) abort();
  variant *v = m->slots[slot] = &m->variants[m->variant_count++];
  strcpy(v->name, name);
  join_group(m, v);
  return v;
}

static void regroup_by_variant(maker *m) {
  m->by_variant = 1;
  memset(m->groups, 0, (size_t)m->group_count * sizeof *m->groups);
  m->group_count = 0;
  for (int i = 0; i < m->variant_count; i++) join_group(m, &m->variants[i]);
}

/* Lists the problem's candidates; release them with wlmi_free. */
static wlm_status list_candidates(maker *m, problem *p) {
  const wlmi_candidate_list *names = NULL;
  wlm_status status;
  WLM_TRY(wlmi_generator_describe(m->generator, &p->spec, m->limits, &names));
  WLM_TRY(wlmi_alloc_array(names->count, sizeof *p->candidates, "covering set", (void **)&p->candidates));
  for (p->count = 0; p->count < names->count; p->count++)
    p->candidates[p->count] = variant_of(m, names->candidates[p->count].variant);
done:
  wlmi_candidates_drop(names);
  return status;
}

static wlm_status list_problems(maker *m) {
  const int copies = m->full ? FULL_COPIES : COPIES;
  m->problems = wlmi_alloc_zero((size_t)copies * SPECS, sizeof *m->problems);
  if (!m->problems) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "covering set");
  for (int number = 0; number < copies * SPECS; number++) {
    problem *p = &m->problems[m->problem_count];
    fill_axes(m, number % SPECS, p->axes);
    wlm_status status = spec_of(p->axes, &p->spec);
    if (status == WLM_ERR_UNSUPPORTED) continue;
    if (status == WLM_OK) status = list_candidates(m, p);
    if (status != WLM_OK) return status;
    m->problem_count++;
  }
  for (int64_t i = m->problem_count - 1; i > 0; i--) {
    int64_t j = (int64_t)test_draw(&m->random, (uint64_t)i + 1);
    problem swap = m->problems[i];
    m->problems[i] = m->problems[j];
    m->problems[j] = swap;
  }
  return WLM_OK;
}

static void sum_uses(struct value *value, int64_t *sum) { *sum += value->uses; }
static void count_unused(struct value *value, int64_t *sum) { *sum += value->uses == 0 && value->text[0] != '/'; }
static void use(struct value *value, int64_t *sum) { (void)sum, value->uses++; }

/* Sums what `visit` adds for each of the variant's values: all together, and each one. */
static int64_t sum_over(const variant *v, void (*visit)(struct value *value, int64_t *sum)) {
  int64_t sum = 0;
  for (int i = 0; i < v->value_count; i++) visit(v->values[i], &sum);
  return sum;
}

/* ---- choosing -------------------------------------------------------------------------------------- */

static int take_new(unsigned char *met, int mark) {
  int is_new = !*met;
  if (mark) *met = 1;
  return is_new;
}

static int is_of_group(const maker *m, int axis) {
  if (!m->by_variant) return axis < CROSSED || axis >= CELLS;
  return (axis > AXIS_OP && axis < COMBINED) || (axis >= CROSSED && axis < CELLS);
}

static int count_new(maker *m, group *g, const int axes[AXES], int mark) {
  int pair = 0, found = 0;
  for (int a = 0; a < AXES; a++)
    if (is_of_group(m, a)) found += take_new(&g->met[a][axes[a]], mark);
  for (int a = 0; a < CROSSED; a++)
    for (int b = a + 1; b < CROSSED; b++, pair++) found += take_new(&m->met[pair][axes[a] * OPS + axes[b]], mark);
  return found;
}

static wlm_status add(maker *m, const problem *p, const variant *v) {
  covering *out = m->out;
  if (out->count == out->capacity) {
    int64_t capacity = out->capacity ? 2 * out->capacity : 256;
    covering_entry *grown = wlmi_realloc(out->entries, (size_t)capacity * sizeof *grown);
    if (!grown) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "covering set");
    out->entries = grown;
    out->capacity = capacity;
  }
  covering_entry *entry = &out->entries[out->count++];
  *entry = (covering_entry){.spec = p->spec, .own = p->own};
  entry->first = sum_over(v, count_unused) > 0;
  strcpy(entry->variant, v->name);
  sum_over(v, use);
  count_new(m, v->group, p->axes, 1);
  return WLM_OK;
}

/* The least used variant of one group: of the candidates from `first` on that belong to it. *next is the index
 * behind them. */
static const variant *least_used(const problem *p, int64_t first, int64_t *next) {
  const variant *best = p->candidates[first];
  int64_t best_uses = INT64_MAX, i = first;
  for (; i < p->count && p->candidates[i]->group == p->candidates[first]->group; i++) {
    int64_t uses = sum_over(p->candidates[i], sum_uses);
    if (uses < best_uses) best = p->candidates[i], best_uses = uses;
  }
  *next = i;
  return best;
}

/* Every group takes the problems that cover at least `least` new combinations for it. With `lottery` a group skips
 * seven of eight problems at random, so that groups choose different ones. */
static wlm_status sweep(maker *m, int least, int lottery) {
  for (int64_t i = 0; i < m->problem_count; i++) {
    const problem *p = &m->problems[i];
    for (int64_t at = 0; at < p->count;) {
      if (lottery && test_draw(&m->random, 8)) {
        at++;
        continue;
      }
      const variant *best = least_used(p, at, &at);
      if (count_new(m, best->group, p->axes, 0) < least) continue;
      wlm_status status = add(m, p, best);
      if (status != WLM_OK) return status;
    }
  }
  return WLM_OK;
}

/* Adds variants with parameter values that no sweep used. */
static wlm_status add_rest(maker *m) {
  for (int64_t i = 0; i < m->problem_count; i++)
    for (int64_t at = 0; at < m->problems[i].count; at++) {
      const variant *v = m->problems[i].candidates[at];
      if (!sum_over(v, count_unused)) continue;
      wlm_status status = add(m, &m->problems[i], v);
      if (status != WLM_OK) return status;
    }
  return WLM_OK;
}

static wlm_status cover(maker *m) {
  for (int least = PAIRS + AXES; least > 0; least--) {
    wlm_status status = sweep(m, least, m->by_variant && least > 1);
    if (status != WLM_OK) return status;
  }
  return add_rest(m);
}

/* ---- user-defined expressions and the epilogue ------------------------------------------------------- */

/* User-defined expressions change only the text of the operator, whose type is that of the accumulator, so a few
 * problems suffice. For each type: each family gets one operator with all parts and an epilogue, and one without
 * combine if it serves that; families that serve neither get one with order=any. */
static const struct own_problem {
  const char *custom, *activation;
  int has_bias, for_rest;
  int64_t n, heads;
} own_problems[] = {
    {"message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce;finish=acc/degree", "leaky_relu(x,0.25)", 1, 0, 24, 3},
    {"init=-inf;reduce=x>acc||x!=x?x:acc", "x<-1?-1:x", 0, 0, 40, 1},
    {"init=0;reduce=acc+x;combine=reduce;order=any", "relu", 1, 1, 4, 2}, /* for families that serve only small N */
};

/* The activation of problems that are not in own_problems. */
static const char plain_activation[] = "leaky_relu(x,0.25)";

/* Sets the texts of a problem in own_problems. */
static void point_at_own(wlm_problem *problem, const struct own_problem *own) {
  problem->custom = own->custom;
  problem->epilogue.activation = own->activation;
  problem->epilogue.bias = own->has_bias;
}

/* A set that was read from a file has addresses of another process; sets its texts again. */
static void point_again(wlm_problem *problem, int own) {
  if (own > COUNT(own_problems)) {
    problem->custom = covering_messages[own - 1 - COUNT(own_problems)].text;
    return;
  }
  if (own) {
    point_at_own(problem, &own_problems[own - 1]);
    return;
  }
  problem->custom = NULL;
  if (problem->epilogue.activation) problem->epilogue.activation = plain_activation;
}

static wlm_status add_own_problem(maker *m, const struct own_problem *own, int type, int sampled, int transpose) {
  wlm_status status;
  problem p = {.own = 1 + (int)(own - own_problems)};
  fill_axes(m, 0, p.axes);
  p.axes[AXIS_TYPES] = type;
  p.axes[AXIS_VALUES] = 1;
  p.axes[AXIS_SAMPLING] = sampled;
  p.axes[AXIS_S] = sampled ? 1 : NO_S;
  WLM_TRY(spec_of(p.axes, &p.spec));
  wlm_problem own_problem = p.spec.problem;
  own_problem.reduce = WLM_CUSTOM;
  own_problem.n = own->n;
  own_problem.heads = own->heads;
  own_problem.transpose = transpose;
  point_at_own(&own_problem, own);
  wlm_csr csr = CSR(.values = own, .value_type = p.spec.value_type, .colind_type = p.spec.colind_type);
  WLM_TRY(wlmi_spec_make(&own_problem, &csr, &p.spec));
  WLM_TRY(list_candidates(m, &p));
  for (int64_t at = 0; at < p.count && status == WLM_OK;) {
    const variant *best = least_used(&p, at, &at);
    if (own->for_rest && best->group->has_own) continue;
    if (!own->for_rest) best->group->has_own = 1;
    status = add(m, &p, best);
  }
done:
  wlmi_free(p.candidates);
  return status;
}

static wlm_status add_own_problems(maker *m) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < 2 * TYPES * COUNT(own_problems) && status == WLM_OK; i++)
    status = add_own_problem(m, &own_problems[i / (2 * TYPES)], i / 2 % TYPES, i % 2, 0);
  return status;
}

/* Adds one candidate of each family, or every variant; only of families whose number is at least first_group. */
static wlm_status add_each(maker *m, const problem *p, int first_group, int every_variant) {
  wlm_status status = WLM_OK;
  for (int64_t at = 0, next; at < p->count && status == WLM_OK; at = next) {
    const variant *best = least_used(p, at, &next);
    if (every_variant) best = p->candidates[at], next = at + 1;
    if (best->group - m->groups >= first_group) status = add(m, p, best);
  }
  return status;
}

/* Adds a problem outside of the sweeps. It has values if csr.values is set; `own` is as in covering_entry. The axes are
 * not used, since all groups are covered by then. */
static wlm_status add_text(maker *m, const wlm_problem *of, const wlm_csr *csr, int own, int first_group,
                           int every_variant) {
  wlm_status status;
  problem p = {.own = own};
  fill_axes(m, 0, p.axes);
  p.axes[AXIS_S] = NO_S;
  WLM_TRY(wlmi_spec_make(of, csr, &p.spec));
  WLM_TRY(list_candidates(m, &p));
  status = add_each(m, &p, first_group, every_variant);
done:
  wlmi_free(p.candidates);
  return status;
}

static wlm_status add_problem(maker *m, const wlm_problem *of, const wlm_csr *csr, int first_group) {
  return add_text(m, of, csr, 0, first_group, m->full);
}

/* ---- listed problems ------------------------------------------------------------------------------------ */

typedef struct listed {
  wlm_problem problem;
  wlm_csr csr;
} listed;
#define LISTED(type_, values_, rowptr_, colind_, has_values_, ...)                                          \
  {                                                                                                         \
    PROBLEM(.dense_type = WLM_##type_, __VA_ARGS__),                                                        \
        CSR(.value_type = WLM_##values_, .rowptr_type = WLM_##rowptr_, .colind_type = WLM_##colind_,        \
            .values = (has_values_) ? types : NULL /* the spec depends only on whether there are values */) \
  }

static wlm_status add_listed(maker *m, const listed *list, int count) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < count && status == WLM_OK; i++) status = add_problem(m, &list[i].problem, &list[i].csr, 0);
  return status;
}

/* SDDMM: every message with sum or mean, and each property that gives another kernel: N for all vector widths and
 * one too wide for registers, heads, types, values or none. */
#define GRADIENT(message_, reduce_, type_, rowptr_, colind_, has_values_, n_, heads_)                    \
  LISTED(type_, type_, rowptr_, colind_, has_values_, .operation = WLM_SDDMM, .message = WLM_##message_, \
         .reduce = WLM_##reduce_, .n = n_, .heads = heads_)
static const listed gradients[] = {
    GRADIENT(MUL, SUM, F32, I32, I32, 1, 128, 1),    GRADIENT(MUL, MEAN, F16, I64, I32, 0, 64, 1),
    GRADIENT(COPY_B, SUM, BF16, I32, I64, 1, 33, 1), GRADIENT(COPY_A, MEAN, F64, I64, I64, 1, 4, 1),
    GRADIENT(ADD, SUM, F32, I64, I64, 1, 66, 1),     GRADIENT(SUB, MEAN, F32, I32, I64, 1, 300, 1),
    GRADIENT(RSUB, SUM, BF16, I32, I32, 0, 100, 1),  GRADIENT(DIV, MEAN, F64, I64, I32, 1, 66, 1),
    GRADIENT(RDIV, SUM, F32, I32, I32, 1, 16, 1),    GRADIENT(MUL, SUM, F32, I64, I32, 0, 1100, 1),
    GRADIENT(DIV, SUM, F16, I32, I64, 0, 7, 1),      GRADIENT(MUL, MEAN, F32, I32, I32, 1, 1, 1),
    GRADIENT(MUL, SUM, F32, I32, I64, 1, 128, 8),    GRADIENT(DIV, MEAN, BF16, I64, I64, 1, 66, 2),
    GRADIENT(MUL, SUM, F16, I32, I32, 0, 40, 8),     GRADIENT(SUB, SUM, F64, I32, I32, 1, 33, 3),
};

/* Products with A^T differ from others only in the order of values and in the positions that argmax indices state.
 * So each type occurs once with a small N, for the families that serve nothing else, and once with another N; max
 * and min have argmax indices. */
#define TRANSPOSED(message_, reduce_, type_, rowptr_, colind_, n_)                                              \
  LISTED(type_, type_, rowptr_, colind_, 1, .transpose = 1, .message = WLM_##message_, .reduce = WLM_##reduce_, \
         .want_argmax = WLM_##reduce_ != WLM_SUM, .n = n_)
static const listed transposed[] = {
    TRANSPOSED(DIV, SUM, F32, I64, I32, 64), TRANSPOSED(ADD, SUM, F64, I32, I64, 66),
    TRANSPOSED(DIV, MAX, F16, I64, I64, 64), TRANSPOSED(MUL, MIN, BF16, I32, I32, 33),
    TRANSPOSED(MUL, MIN, F32, I32, I64, 4),  TRANSPOSED(SUB, MAX, F64, I64, I32, 2),
    TRANSPOSED(MUL, SUM, F16, I32, I32, 8),  TRANSPOSED(RDIV, SUM, BF16, I64, I64, 4),
};

/* Families that serve only transposed products, those from first_group on: every type with every message, each pair
 * of index types, heads, a bias and an activation; other properties are drawn. */
static wlm_status add_transposed_alone(maker *m, int first_group, int sampled) {
  wlm_status status = WLM_OK;
  for (int i = 0; first_group < m->group_count && i < TYPES * MESSAGES && status == WLM_OK; i++) {
    wlm_problem of =
        PROBLEM(.transpose = 1, .message = (wlm_message)(i % MESSAGES), .dense_type = (wlm_type)(i / MESSAGES));
    wlm_csr csr = WLM_CSR_INIT;
    csr.value_type = of.dense_type == WLM_F64 || test_draw(&m->random, 2) ? of.dense_type : WLM_F32;
    csr.rowptr_type = (wlm_index)(i / 2 % 2);
    csr.colind_type = (wlm_index)(i % 2);
    csr.values = i % 4 == 1 ? NULL : types;
    if (i % 3 == 0 && csr.values && of.message != WLM_COPY_B)
      of.heads = heads[1 + test_draw(&m->random, COUNT(heads) - 1)];
    do of.n = widths_n[test_draw(&m->random, COUNT(widths_n))];
    while (of.n % of.heads);
    of.epilogue.activation = i % 4 == 2 ? plain_activation : NULL;
    of.empty = (wlm_empty)test_draw(&m->random, 2);
    of.epilogue.bias = i % 8 >= 4;
    if (sampled) {
      of.reduce = (wlm_reduce)(i / 2 % REDUCTIONS);
      of.sampling.sample = (wlm_sample)(1 + i % 3);
      of.sampling.norm = of.reduce == WLM_SUM ? (wlm_sample_norm)(i / 10 % NORMS) : WLM_NORM_NONE;
      of.sampling.width = widths_s[test_draw(&m->random, COUNT(widths_s))];
      of.want_argmax = (of.reduce == WLM_MAX || of.reduce == WLM_MIN) && i % 2;
    }
    status = add_problem(m, &of, &csr, first_group);
  }
  return status;
}

/* The backward passes of sampled products: transpose and SDDMM with every strategy and norm, each type, argmax
 * indices, heads, and S below and above the stride of published fastrand (577). */
#define SAMPLED(operation_, message_, reduce_, type_, rowptr_, colind_, n_, heads_, sample_, norm_, width_, ...) \
  LISTED(type_, type_, rowptr_, colind_, 1, .operation = WLM_##operation_, .message = WLM_##message_,            \
         .reduce = WLM_##reduce_, .want_argmax = WLM_##reduce_ == WLM_MAX || WLM_##reduce_ == WLM_MIN, .n = n_,  \
         .heads = heads_, .sampling = {WLM_##sample_, WLM_##norm_, width_}, __VA_ARGS__)
#define BACKWARD(operation, message, reduce, type, rowptr, ...)                                            \
  SAMPLED(operation, message, reduce, type, rowptr, __VA_ARGS__, .transpose = WLM_##operation == WLM_SPMM, \
          .argmax_type = WLM_##rowptr)
static const listed backwards[] = {
    BACKWARD(SPMM, MUL, SUM, F32, I32, I32, 64, 1, SAMPLE_FASTRAND, NORM_KEPT, 700),
    BACKWARD(SPMM, MUL, SUM, F32, I64, I32, 33, 1, SAMPLE_BUCKET, NORM_UNBIASED, 32),
    BACKWARD(SPMM, RDIV, SUM, F16, I32, I64, 40, 8, SAMPLE_FASTRAND_COPRIME, NORM_NONE, 9),
    BACKWARD(SPMM, ADD, SUM, BF16, I64, I64, 8, 1, SAMPLE_FASTRAND, NORM_UNBIASED, 8),
    BACKWARD(SPMM, DIV, SUM, F64, I32, I32, 66, 2, SAMPLE_FASTRAND_COPRIME, NORM_KEPT, 64),
    BACKWARD(SPMM, MUL, MEAN, F32, I32, I64, 300, 1, SAMPLE_FASTRAND, NORM_NONE, 1000),
    BACKWARD(SPMM, SUB, MAX, F64, I64, I32, 2, 1, SAMPLE_FASTRAND, NORM_NONE, 8),
    BACKWARD(SPMM, MUL, MIN, BF16, I32, I32, 31, 1, SAMPLE_BUCKET, NORM_NONE, 100),
    BACKWARD(SPMM, DIV, MAX, F16, I64, I64, 128, 1, SAMPLE_FASTRAND_COPRIME, NORM_NONE, 16),
    BACKWARD(SPMM, MUL, PROD, F32, I64, I32, 7, 1, SAMPLE_FASTRAND, NORM_NONE, 700),
    BACKWARD(SDDMM, MUL, SUM, F32, I32, I32, 128, 1, SAMPLE_FASTRAND, NORM_KEPT, 700),
    BACKWARD(SDDMM, DIV, MEAN, F16, I64, I32, 64, 1, SAMPLE_BUCKET, NORM_NONE, 32),
    BACKWARD(SDDMM, MUL, SUM, BF16, I32, I64, 33, 1, SAMPLE_FASTRAND_COPRIME, NORM_NONE, 9),
    BACKWARD(SDDMM, RDIV, SUM, F64, I64, I64, 4, 1, SAMPLE_FASTRAND, NORM_UNBIASED, 64),
    BACKWARD(SDDMM, MUL, SUM, F32, I64, I64, 1100, 1, SAMPLE_BUCKET, NORM_UNBIASED, 100),
    BACKWARD(SDDMM, SUB, MEAN, F32, I32, I64, 66, 2, SAMPLE_FASTRAND_COPRIME, NORM_NONE, 577),
    BACKWARD(SDDMM, MUL, SUM, BF16, I32, I32, 128, 8, SAMPLE_FASTRAND, NORM_KEPT, 8),
    BACKWARD(SDDMM, COPY_B, SUM, F32, I32, I32, 16, 1, SAMPLE_BUCKET, NORM_KEPT, 8),
};

/* Positions of 16 bits, which differ in how they are stored: each type, widths for every vector, both types of rowptr,
 * a sample. */
#define LOWER(...) SAMPLED(__VA_ARGS__, .argmax_type = WLM_I16)
static const listed lowers[] = {
    LOWER(SPMM, COPY_B, MAX, F32, I32, I32, 64, 1, SAMPLE_NONE, NORM_NONE, 0),
    LOWER(SPMM, MUL, MIN, F32, I64, I32, 6, 3, SAMPLE_FASTRAND, NORM_NONE, 8),
    LOWER(SPMM, MUL, MAX, F16, I32, I32, 72, 1, SAMPLE_NONE, NORM_NONE, 0),
    LOWER(SPMM, COPY_B, MIN, BF16, I64, I32, 7, 1, SAMPLE_NONE, NORM_NONE, 0),
    LOWER(SPMM, ADD, MAX, F64, I32, I64, 34, 1, SAMPLE_NONE, NORM_NONE, 0),
};

/* Attention, its gradient and the sums over rows: each type, heads with and without a matching group of lanes, with and
 * without edge terms, each kind of scores. */
#define ATTENTION(operation_, score_, type_, values_, rowptr_, colind_, has_values_, transpose_, n_, heads_, dropout_) \
  LISTED(type_, values_, rowptr_, colind_, has_values_, .operation = WLM_##operation_, .score = WLM_##score_,          \
         .transpose = transpose_, .dropout = dropout_, .n = n_, .heads = heads_)
static const listed attentions[] = {
    ATTENTION(ATTENTION, SCORE_GAT, F32, F32, I32, I32, 0, 0, 64, 8, 0),
    ATTENTION(ATTENTION, SCORE_GAT, F32, F32, I32, I32, 0, 1, 64, 8, 0),
    ATTENTION(ATTENTION, SCORE_GAT, F16, F32, I64, I32, 1, 0, 128, 1, 0),
    ATTENTION(ATTENTION, SCORE_EDGE, BF16, BF16, I32, I64, 1, 1, 32, 4, 0),
    ATTENTION(ATTENTION, SCORE_EDGE, F64, F64, I32, I32, 1, 0, 66, 3, 1),
    ATTENTION(ATTENTION, SCORE_GAT, F32, F32, I64, I64, 1, 1, 47, 1, 1),
    ATTENTION(ATTENTION, SCORE_GATV2, BF16, F32, I32, I32, 0, 0, 32, 4, 0),
    ATTENTION(ATTENTION, SCORE_GATV2, F64, F64, I64, I32, 1, 1, 66, 3, 1),
    ATTENTION(ATTENTION, SCORE_DOT, F16, F32, I32, I32, 1, 0, 64, 8, 1),
    ATTENTION(ATTENTION, SCORE_DOT, F32, F32, I32, I64, 0, 1, 64, 2, 0),
    ATTENTION(ATTENTION, SCORE_DOT, F64, F64, I64, I32, 1, 0, 66, 3, 0),
    ATTENTION(ATTENTION_ROWS, SCORE_GATV2, F16, F32, I32, I64, 0, 0, 128, 1, 0),
    ATTENTION(ATTENTION_ROWS, SCORE_DOT, BF16, BF16, I32, I32, 1, 0, 64, 2, 1),
};

static wlm_status add_messages(maker *m) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < covering_message_count && status == WLM_OK; i++) {
    wlm_csr csr = WLM_CSR_INIT;
    const wlm_problem of = covering_message_problem(&covering_messages[i], &csr);
    status = add_text(m, &of, &csr, COUNT(own_problems) + 1 + i, 0, 0);
  }
  return status;
}

wlm_status covering_make(wlmi_generator *generator, const wlmi_limits *limits, uint64_t seed, int full, covering *out) {
  *out = (covering){0};
  maker m = {generator, limits, full, .random = {seed * 0x9E3779B97F4A7C15u | 1}, .out = out};
  wlm_status status = WLM_OK;
  m.groups = wlmi_alloc_zero(MAX_GROUPS, sizeof *m.groups);
  m.variants = wlmi_alloc_zero(MAX_VARIANTS, sizeof *m.variants);
  if (!m.groups || !m.variants) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "covering set"));
  WLM_TRY(list_problems(&m));
  WLM_TRY(cover(&m));
  WLM_TRY(add_own_problems(&m));
  WLM_TRY(add_listed(&m, gradients, COUNT(gradients)));
  const int families = m.group_count;
  WLM_TRY(add_listed(&m, transposed, COUNT(transposed)));
  WLM_TRY(add_transposed_alone(&m, families, 0));
  const int unsampled = m.group_count;
  WLM_TRY(add_listed(&m, backwards, COUNT(backwards)));
  WLM_TRY(add_transposed_alone(&m, unsampled, 1));
  for (int type = 0; type < TYPES; type++) WLM_TRY(add_own_problem(&m, &own_problems[type % 2], type, 1, 1));
  WLM_TRY(add_listed(&m, attentions, COUNT(attentions)));
  WLM_TRY(add_messages(&m));
  WLM_TRY(add_listed(&m, lowers, COUNT(lowers)));
  if (!full) goto done;
  regroup_by_variant(&m);
  WLM_TRY(cover(&m));
done:
  covering_mark_sample(out);
  for (int64_t i = 0; i < m.problem_count; i++) wlmi_free(m.problems[i].candidates);
  wlmi_free(m.problems);
  wlmi_free(m.variants);
  wlmi_free(m.groups);
  if (status != WLM_OK) covering_release(out);
  return status;
}

/* ---- writing and reading a set ------------------------------------------------------------------------- */

void covering_save(const covering *set, const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(set->entries, sizeof *set->entries, (size_t)set->count, file) != (size_t)set->count ||
      fclose(file))
    fail_msg("%s: %s", path, strerror(errno));
}

void covering_load(const char *path, covering *out) {
  size_t size;
  unsigned char *read = read_whole(path, &size);
  const int64_t count = (int64_t)(size / sizeof *out->entries);
  *out = (covering){wlmi_alloc_zero((size_t)count, sizeof *out->entries), count, count};
  if (!out->entries) fail_msg("%s: %lld entries do not fit in memory", path, (long long)count);
  memcpy(out->entries, read, size);
  free(read);
  for (int64_t i = 0; i < count; i++) {
    point_again(&out->entries[i].spec.problem, out->entries[i].own);
  }
}

int covering_full(void) { return getenv("WARPLOOM_FULL") != NULL; }

void covering_path(const char *folder, const wlmi_limits *limits, int full, char *path, size_t size) {
  snprintf(path, size, "%s/%s%d%s.set", folder, limits->target == WLMI_TARGET_CUDA ? "cuda" : "host", limits->arch,
           full ? "-full" : "");
}

void covering_get(wlmi_generator *generator, const wlmi_limits *limits, int full, covering *out) {
  const char *folder = getenv("WARPLOOM_COVERING");
  char path[512];
  if (!folder) {
    assert_status(WLM_OK, covering_make(generator, limits, 1, full, out));
    return;
  }
  covering_path(folder, limits, full, path, sizeof path);
  covering_load(path, out);
}

void covering_release(covering *set) {
  wlmi_free(set->entries);
  *set = (covering){0};
}

void covering_describe(const covering_entry *entry, char *text, size_t size) {
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(&entry->spec, key);
  snprintf(text, size, "%s n=%lld %s", entry->variant, (long long)entry->spec.problem.n, key);
}
