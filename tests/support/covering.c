/* Greedy: all problems in a seeded order, several times over; in each round a family takes those problems that
 * bring at least so many pairs not met yet, first those that bring many, at last those that bring one.
 * What a family does not serve never comes up, so nothing here knows the rules of validity. For each problem it
 * takes the variant whose parameter values it has used least. */
#include "support/covering.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* The axes of a problem. The family is one more: a pair of axes is covered when all pairs of their values that occur
 * were met, in whatever family, and a family when it met every value of every axis that it serves. */
enum { AXIS_OP, AXIS_ROWPTR, AXIS_VALUES, AXIS_EMPTY, AXIS_SAMPLING, AXES };
enum { MESSAGES = 8, REDUCTIONS = 5, OPS = MESSAGES * REDUCTIONS, NORMS = 3, SAMPLINGS = 1 + 3 * NORMS };
static const int axis_sizes[AXES] = {OPS, 2, 2, 2, SAMPLINGS};
enum { PAIRS = AXES * (AXES - 1) / 2, SPECS = OPS * 2 * 2 * 2 * SAMPLINGS };

static const int64_t widths_n[] = {1, 2, 7, 16, 31, 32, 33, 64, 66, 100, 128, 300};
static const int64_t widths_s[] = {8, 32, 100, 9, 577, 64, 2304};
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { MAX_FAMILIES = 64, MAX_VALUES = 4096, VALUE_NAME = WLM_VARIANT_NAME };

typedef struct family {
  char name[VALUE_NAME];
  unsigned char met[AXES][OPS];
  int value_count;
  struct value {
    char text[VALUE_NAME]; /* "cf=2"; also a variant's values together, "/cf=2,rows=4", so that variants take turns */
    int64_t uses;
  } values[MAX_VALUES];
} family;

typedef struct problem {
  wlm_spec spec;
  int axes[AXES];
  wlm_names names; /* its candidates */
} problem;

typedef struct maker {
  problem *problems;
  int64_t problem_count;
  family *families;
  int family_count;
  unsigned char met[PAIRS][OPS * OPS];
  uint64_t random;
  covering *out;
} maker;

static uint64_t draw(maker *m) {
  m->random ^= m->random << 13;
  m->random ^= m->random >> 7;
  m->random ^= m->random << 17;
  return m->random >> 17;
}

/* ---- problems ------------------------------------------------------------------------------------ */

static wlm_status spec_of(maker *m, const int axes[AXES], wlm_spec *spec) {
  wlm_problem p = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  p.n = widths_n[draw(m) % COUNT(widths_n)];
  p.sample_width = widths_s[draw(m) % COUNT(widths_s)];
  p.message = (wlm_message)(axes[AXIS_OP] / REDUCTIONS);
  p.reduce = (wlm_reduce)(axes[AXIS_OP] % REDUCTIONS);
  csr.rowptr_type = (wlm_index)axes[AXIS_ROWPTR];
  csr.values = axes[AXIS_VALUES] ? &csr : NULL; /* whether there are any is all that counts */
  p.empty = (wlm_empty)axes[AXIS_EMPTY];
  if (axes[AXIS_SAMPLING]) {
    p.sample = (wlm_sample)(1 + (axes[AXIS_SAMPLING] - 1) / NORMS);
    p.sample_norm = (wlm_sample_norm)((axes[AXIS_SAMPLING] - 1) % NORMS);
  }
  return wlm_spec_make(&p, &csr, spec);
}

static wlm_status list_problems(maker *m, wlm_generator *generator, const wlm_limits *limits) {
  m->problems = wlm_alloc_zero(SPECS, sizeof *m->problems);
  if (!m->problems) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "covering set");
  for (int number = 0; number < SPECS; number++) {
    problem *p = &m->problems[m->problem_count];
    for (int axis = 0, rest = number; axis < AXES; rest /= axis_sizes[axis++]) p->axes[axis] = rest % axis_sizes[axis];
    wlm_status status = spec_of(m, p->axes, &p->spec);
    if (status == WLM_ERR_UNSUPPORTED) continue;
    if (status == WLM_OK) status = wlm_generator_candidates(generator, &p->spec, limits, &p->names);
    if (status != WLM_OK) return status;
    m->problem_count++;
  }
  for (int64_t i = m->problem_count - 1; i > 0; i--) {
    int64_t j = (int64_t)(draw(m) % (uint64_t)(i + 1));
    problem swap = m->problems[i];
    m->problems[i] = m->problems[j];
    m->problems[j] = swap;
  }
  return WLM_OK;
}

/* ---- families and their parameter values ----------------------------------------------------------- */

static family *family_of(maker *m, const char *variant) {
  size_t size = strcspn(variant, "/");
  for (int i = 0; i < m->family_count; i++)
    if (strlen(m->families[i].name) == size && !strncmp(m->families[i].name, variant, size)) return &m->families[i];
  if (m->family_count == MAX_FAMILIES || size >= VALUE_NAME) return NULL;
  family *f = &m->families[m->family_count++];
  memcpy(f->name, variant, size);
  return f;
}

static struct value *value_of(family *f, const char *text, size_t size) {
  int i = 0;
  while (i < f->value_count && (strlen(f->values[i].text) != size || strncmp(f->values[i].text, text, size))) i++;
  if (i == MAX_VALUES || size >= VALUE_NAME) abort();
  if (i == f->value_count) memcpy(f->values[f->value_count++].text, text, size);
  return &f->values[i];
}

/* Calls visit for the variant's parameters, all together and one by one. */
static void each_value(family *f, const char *variant, void (*visit)(struct value *value, int64_t *sum), int64_t *sum) {
  const char *at = variant + strcspn(variant, "/");
  visit(value_of(f, at, strlen(at)), sum);
  while (*at) {
    size_t size = strcspn(++at, ",");
    visit(value_of(f, at, size), sum);
    at += size;
  }
}

static void sum_uses(struct value *value, int64_t *sum) { *sum += value->uses; }
static void count_unused(struct value *value, int64_t *sum) { *sum += value->uses == 0 && value->text[0] != '/'; }
static void use(struct value *value, int64_t *sum) { (void)sum, value->uses++; }

static int64_t sum_over(family *f, const char *variant, void (*visit)(struct value *value, int64_t *sum)) {
  int64_t sum = 0;
  each_value(f, variant, visit, &sum);
  return sum;
}

/* ---- choosing -------------------------------------------------------------------------------------- */

static int take_new(unsigned char *met, int mark) {
  int is_new = !*met;
  if (mark) *met = 1;
  return is_new;
}

static int count_new_pairs(maker *m, family *f, const int axes[AXES], int mark) {
  int pair = 0, found = 0;
  for (int a = 0; a < AXES; a++) {
    found += take_new(&f->met[a][axes[a]], mark);
    for (int b = a + 1; b < AXES; b++, pair++) found += take_new(&m->met[pair][axes[a] * OPS + axes[b]], mark);
  }
  return found;
}

static wlm_status add(maker *m, family *f, const problem *p, const char *variant) {
  covering *out = m->out;
  if (out->count == out->capacity) {
    int64_t capacity = out->capacity ? 2 * out->capacity : 256;
    covering_entry *grown = wlm_realloc(out->entries, (size_t)capacity * sizeof *grown);
    if (!grown) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "covering set");
    out->entries = grown;
    out->capacity = capacity;
  }
  covering_entry *entry = &out->entries[out->count++];
  entry->spec = p->spec;
  entry->first = sum_over(f, variant, count_unused) > 0;
  snprintf(entry->variant, sizeof entry->variant, "%s", variant);
  sum_over(f, variant, use);
  count_new_pairs(m, f, p->axes, 1);
  return WLM_OK;
}

/* The family's least used variant among the candidates that stand together from `first` on; *next is the
 * candidate after them. */
static int64_t least_used(family *f, const wlm_names *names, int64_t first, int64_t *next) {
  size_t size = strlen(f->name);
  int64_t best = first, best_uses = INT64_MAX, i = first;
  for (; i < names->count && !strncmp(names->names[i], f->name, size) && strchr("/", names->names[i][size]); i++) {
    int64_t uses = sum_over(f, names->names[i], sum_uses);
    if (uses < best_uses) best = i, best_uses = uses;
  }
  *next = i;
  return best;
}

static wlm_status sweep(maker *m, int least_new_pairs) {
  for (int64_t i = 0; i < m->problem_count; i++) {
    const problem *p = &m->problems[i];
    for (int64_t at = 0; at < p->names.count;) {
      family *f = family_of(m, p->names.names[at]);
      if (!f) return wlm_fail(WLM_ERR_OVERFLOW, "the covering set knows at most %d families", MAX_FAMILIES);
      int64_t best = least_used(f, &p->names, at, &at);
      if (count_new_pairs(m, f, p->axes, 0) < least_new_pairs) continue;
      wlm_status status = add(m, f, p, p->names.names[best]);
      if (status != WLM_OK) return status;
    }
  }
  return WLM_OK;
}

/* Values that the sweeps did not happen on, or with `all` everything there is. */
static wlm_status add_rest(maker *m, int all) {
  for (int64_t i = 0; i < m->problem_count; i++)
    for (int64_t at = 0; at < m->problems[i].names.count; at++) {
      const char *variant = m->problems[i].names.names[at];
      family *f = family_of(m, variant);
      if (!f) return wlm_fail(WLM_ERR_OVERFLOW, "the covering set knows at most %d families", MAX_FAMILIES);
      if (!all && !sum_over(f, variant, count_unused)) continue;
      wlm_status status = add(m, f, &m->problems[i], variant);
      if (status != WLM_OK) return status;
    }
  return WLM_OK;
}

wlm_status covering_make(wlm_generator *generator, const wlm_limits *limits, uint64_t seed, covering *out) {
  *out = (covering){0};
  maker m = {.random = seed * 0x9E3779B97F4A7C15u | 1, .out = out};
  wlm_status status = WLM_OK;
  int full = getenv("WARPLOOM_FULL") != NULL;
  m.families = wlm_alloc_zero(MAX_FAMILIES, sizeof *m.families);
  if (!m.families) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "covering set"));
  WLM_TRY(list_problems(&m, generator, limits));
  for (int pairs = full ? 0 : PAIRS + AXES; pairs > 0; pairs--) WLM_TRY(sweep(&m, pairs));
  WLM_TRY(add_rest(&m, full));
done:
  for (int64_t i = 0; m.problems && i < SPECS; i++) wlm_names_release(&m.problems[i].names);
  wlm_free(m.problems);
  wlm_free(m.families);
  if (status != WLM_OK) covering_release(out);
  return status;
}

void covering_release(covering *set) {
  wlm_free(set->entries);
  *set = (covering){0};
}

void covering_describe(const covering_entry *entry, char *text, size_t size) {
  char key[WLM_SPEC_KEY];
  wlm_spec_key(&entry->spec, key);
  snprintf(text, size, "%s n=%lld %s", entry->variant, (long long)entry->spec.problem.n, key);
}
