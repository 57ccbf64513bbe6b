#include "tuner/archive_build.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/problem/cell.h"
#include "core/problem/spec_key.h"
#include "runtime/archived.h"
#include "runtime/decide.h"
#include "runtime/devices.h"
#include "runtime/purpose.h"
#include "select/select.h"
#include "tuner/compile_ahead.h"

/* ---- the problems ---------------------------------------------------------------------------------------------- */

/* For which types of B a problem is; whether it is of products that are computed once, of plans, or of both; and the
 * matrices, if these are not ordinary ones: what gradients of attention sum over, a diagonal, and blocks of 64 rows
 * (Graph.diagonal and Graph.blocks in Python). */
enum {
  F32 = 1,
  HALVES = 2,
  CALLS = 4,
  PLANS = 8,
  DIAGONAL = 16,
  BLOCKS = 32,
  BOTH = CALLS | PLANS,
  ALL = F32 | HALVES | BOTH
};

/* Numbers of columns. For each `common` one the kernels that serve the most matrices are taken. For each `wide` one the
 * kernel that does is taken in the form that serves any number of columns: they stand for the vectors of B that
 * are loaded at once (8, 4, 2 elements or 1), and are so wide that a kernel of whole groups of threads is chosen. */
enum { WIDE = 600 };
typedef struct widths {
  int64_t common[6], wide[5]; /* each ends with a 0 */
} widths;

static const widths columns = {{16, 32, 64, 128, 256, 0}, {WIDE + 8, WIDE + 4, WIDE + 2, WIDE + 1, 0}};
static const widths head_columns = {
    {32, 64, 128, 256, 0}, {4 * (WIDE + 8), 4 * (WIDE + 4), 4 * (WIDE + 2), 4 * (WIDE + 1), 0}}; /* of 4 heads */
static const widths one_each = {{1, 0}, {1, 0}}, four_each = {{4, 0}, {4, 0}};

/* Of rare problems, only kernels for any number of columns are taken. */
static const widths any = {{0}, {WIDE + 8, WIDE + 4, WIDE + 2, WIDE + 1, 0}};
static const widths any_of_heads = {{0}, {4 * (WIDE + 8), 4 * (WIDE + 4), 4 * (WIDE + 2), 4 * (WIDE + 1), 0}};

/* A problem for each of its types. */
typedef struct kind {
  const char *group, *operator_name, *values; /* values: "none", "f32", or "" for the type of B */
  const char *rest;                           /* of the problem key, behind the sampling */
  const widths *widths;
  int scope; /* F32 and so on */
} kind;

#define FORWARD_AND_BACK(group, values, rest, one, heads)                                    \
  {group, "mul.sum", values, ",operation=attention" rest, one, ALL},                         \
      {group, "mul.sum", values, ",operation=attention" rest ",transpose=1", one, ALL},      \
      {group, "mul.sum", values, ",operation=attention" rest ",heads=4", heads, ALL}, {      \
    group, "mul.sum", values, ",operation=attention" rest ",transpose=1,heads=4", heads, ALL \
  }

/* Products of rows, as a gradient of attention has of dC and C. */
#define PRODUCTS_OF_ROWS(group)                                                                               \
  {group, "custom{edge_sum=x*b}", "none", ",operation=message", &columns, F32 | BOTH | DIAGONAL}, {           \
    group, "custom{edge_sum=x*b}", "none", ",operation=message,heads=4", &head_columns, F32 | BOTH | DIAGONAL \
  }

static const kind kinds[] = {
    {"sum", "mul.sum", "", "", &columns, ALL},
    {"sum", "mul.sum", "", ",transpose=1", &columns, ALL},
    {"sum", "mul.sum", "none", ",transpose=1", &columns, ALL},
    {"sum", "copy_b.sum", "none", "", &columns, ALL},
    {"sum", "mul.sum", "none", ",operation=sddmm", &columns, ALL},
    {"mean", "copy_b.mean", "none", "", &columns, ALL},
    {"mean", "mul.sum", "f32", ",transpose=1", &columns, HALVES | BOTH},
    {"max", "copy_b.max", "none", "", &columns, ALL},
    {"max", "copy_b.max", "none", ",arg=i16", &columns, F32 | HALVES | PLANS},
    {"max", "copy_b.max", "none", ",arg=i32", &columns, F32 | HALVES | CALLS},
    {"max", "copy_b.max", "none", ",arg=i64", &any, ALL},
    FORWARD_AND_BACK("gat", "none", "", &columns, &head_columns),
    FORWARD_AND_BACK("gat", "none", ",dropout=1", &any, &any_of_heads),
    {"gat", "copy_a.sum", "f32", "", &one_each, F32 | BOTH},
    {"gat", "copy_a.sum", "f32", ",heads=4", &four_each, F32 | BOTH},
    PRODUCTS_OF_ROWS("gat"),
    FORWARD_AND_BACK("gatv2", "none", ",score=gatv2", &columns, &head_columns),
    {"gatv2", "mul.sum", "none", ",operation=attention_rows,score=gatv2", &columns, ALL},
    {"gatv2", "mul.sum", "none", ",operation=attention_rows,score=gatv2,heads=4", &head_columns, ALL},
    {"gatv2", "mul.sum", "none", "", &columns, F32 | PLANS | BLOCKS},
    PRODUCTS_OF_ROWS("gatv2"),
    FORWARD_AND_BACK("transformer", "none", ",score=dot", &columns, &head_columns),
    {"transformer", "mul.sum", "none", ",operation=attention_rows,score=dot", &any, ALL},
    {"transformer", "mul.sum", "none", ",operation=attention_rows,score=dot,heads=4", &head_columns, ALL},
    {"transformer", "mul.sum", "f32", ",heads=4", &head_columns, ALL},
    PRODUCTS_OF_ROWS("transformer"),
    /* Heads whose columns are no power of two: products of rows, then attention with scores of edges. */
    {"transformer", "mul.sum", "none", ",operation=sddmm,heads=4", &any_of_heads, F32 | BOTH},
    {"transformer", "mul.sum", "f32", ",transpose=1,heads=4", &any_of_heads, F32 | BOTH},
    FORWARD_AND_BACK("transformer", "f32", ",score=edge", &any, &any_of_heads),
};
enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(KINDS <= 64, "`wanted` has 64 bits");

static const wlm_type types[] = {WLM_F32, WLM_F16, WLM_BF16};
enum { TYPES = sizeof types / sizeof *types };

/* ---- the kernels of an architecture ---------------------------------------------------------------------------- */

/* The matrices for which kernels are chosen: each number of rows with each number of non-zeros a row, even and skewed.
 */
static const int64_t rows_of[] = {2500, 20000, 160000};
static const double means[] = {4, 10, 30}, cvs[] = {0.4, 2};
enum {
  ROWS = sizeof rows_of / sizeof *rows_of,
  MEANS = sizeof means / sizeof *means,
  CVS = sizeof cvs / sizeof *cvs,
  MATRICES = ROWS * MEANS * CVS, /* at most 64 */
  MOST_CHOSEN = 256
};

/* What a kernel is chosen for: a product that is computed once (wlm_spmm), one that is planned for many calls, or any
 * number of columns. */
typedef enum use { FOR_CALL, FOR_PLAN, FOR_ANY_WIDTH } use;

/* How many kernels are kept for a common number of columns: of machine code and of PTX, which spares less time because
 * the driver still compiles it; in f32 and in 16-bit types; for a call and for plans. */
static const int kept[2][2][FOR_PLAN + 1] = {{{2, 2}, {1, 1}}, {{1, 0}, {0, 0}}};

typedef struct job {
  char *source, *name; /* name: the variant, or what NVRTC's messages call it */
  int is_compiled;
  wlmi_hash key;
  void *image;
  size_t size;
  wlmi_hash ptx_key; /* of the PTX that the machine code is made of, for newer architectures of the same request */
  char *ptx;         /* NULL = not wanted, or another job has taken it */
  size_t ptx_size;
} job;

typedef struct build {
  const wlmi_archive_request *request;
  uint64_t wanted;                /* a bit for each of `kinds` */
  wlm_context *context;           /* of the present architecture */
  job *jobs;                      /* of all architectures */
  int64_t count, capacity, begun; /* begun: the first job of the present architecture */
  wlmi_archived_kernel *purposes; /* keys without bytes */
  int64_t purpose_count, purpose_capacity;
  int keeps_ptx; /* of the present architecture */
} build;

static wlmi_device *device_of(const build *b) { return wlmi_context_device(b->context); }

/* The PTX that an earlier architecture's machine code of the same source was made of becomes the job's image. */
static void take_ptx(build *b, job *taker) {
  for (int64_t i = 0; i < b->begun; i++) {
    job *j = &b->jobs[i];
    if (!j->ptx || !wlmi_hash_equal(j->ptx_key, taker->key)) continue;
    taker->image = j->ptx;
    taker->size = j->ptx_size;
    j->ptx = NULL;
    return;
  }
}

/* The key of a source or purpose for the present architecture. */
static wlmi_hash key_of(const build *b, wlmi_hash what) {
  const wlmi_device_info *info = &device_of(b)->info;
  const int ptx = wlmi_common_gpu_ptx(info->limits.arch);
  return wlmi_archived_key(what, ptx ? WLMI_CODE_PTX : WLMI_CODE_MACHINE, ptx ? ptx : info->limits.arch, info->flags);
}

static wlm_status add_purpose(build *b, wlmi_hash purpose) {
  const wlmi_hash keys[] = {purpose, key_of(b, purpose)};
  for (int i = 0; i < 2; i++) {
    WLM_CHECK(wlmi_grow((void **)&b->purposes, b->purpose_count, &b->purpose_capacity, sizeof *b->purposes,
                        "purposes of kernels"));
    b->purposes[b->purpose_count++] = (wlmi_archived_kernel){.key = keys[i]};
  }
  return WLM_OK;
}

/* Takes the program's source. A source that is there already, for example for another width, is compiled once. */
static wlm_status add_program(build *b, wlmi_program *program) {
  const wlmi_device_info *info = &device_of(b)->info;
  const wlmi_hash source = wlmi_hash_text(program->source), key = key_of(b, source);
  for (int64_t i = b->begun; i < b->count; i++)
    if (wlmi_hash_equal(b->jobs[i].key, key)) return WLM_OK;
  WLM_CHECK(wlmi_grow((void **)&b->jobs, b->count, &b->capacity, sizeof *b->jobs, "kernels to compile"));
  job *added = &b->jobs[b->count++];
  *added = (job){.source = program->source,
                 .name = wlmi_strdup(program->variant),
                 .key = key,
                 .ptx_key = wlmi_archived_key(source, WLMI_CODE_PTX, info->limits.arch, info->flags)};
  if (wlmi_common_gpu_ptx(info->limits.arch)) take_ptx(b, added);
  program->source = NULL;
  return added->name ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "kernels to compile");
}

/* A variant and the matrices, a bit for each, for which it is chosen or expected to be so nearly as fast that it runs
 * instead of compiling the choice. */
typedef struct tally {
  wlmi_variant variant;
  uint64_t serves;
} tally;

static void note(tally *tallies, int *count, const wlmi_variant *variant, int64_t matrix) {
  int i = 0;
  while (i < *count && !wlmi_variant_same(&tallies[i].variant, variant)) i++;
  if (i == MOST_CHOSEN) return;
  if (i == *count) tallies[(*count)++] = (tally){*variant, 0};
  tallies[i].serves |= UINT64_C(1) << matrix;
}

static void note_choice(tally *tallies, int *count, const wlmi_decision *decision, use use, int64_t matrix) {
  const wlmi_entry *first = &decision->entries[0];
  const double near[] = {wlmi_near_enough, wlmi_near_enough_for_plans, 0}, most = near[use] * first->seconds;
  for (int i = 0; i < decision->entry_count; i++) {
    const wlmi_entry *entry = &decision->entries[i];
    const int is_near = !i || (entry->seconds > 0 && entry->seconds <= most);
    if (is_near && entry->step != WLMI_STEP_BUILTIN) note(tallies, count, &entry->variant, matrix);
  }
}

static int bits_of(uint64_t set) {
  int count = 0;
  for (; set; set &= set - 1) count++;
  return count;
}

/* The variant that serves the most of these matrices, the first of several; NULL if there are none. */
static const tally *most_serving(const tally *tallies, int count, uint64_t matrices) {
  const tally *best = NULL;
  for (int i = 0; i < count; i++)
    if (bits_of(tallies[i].serves & matrices) > (best ? bits_of(best->serves & matrices) : 0)) best = &tallies[i];
  return best;
}

static wlm_stats stats_of(const kind *k, int i) {
  const int64_t rows = rows_of[i % ROWS], nnz = (int64_t)((double)rows * means[i / ROWS % MEANS]);
  wlm_stats stats;
  if (k->scope & (DIAGONAL | BLOCKS)) {
    wlmi_stats_estimate(k->scope & DIAGONAL ? rows : (rows + 63) / 64, rows, rows, &stats);
    return stats;
  }
  wlmi_stats_estimate(rows, rows, nnz, &stats);
  return wlmi_log_normal_stats(&stats, cvs[i / ROWS / MEANS]);
}

/* Lets each matrix choose. */
static wlm_status count_choices(build *b, const kind *k, const char *key, int64_t n, use use, wlmi_spec *spec,
                                tally *tallies, int *count) {
  wlmi_decision decision;
  wlm_status status = wlmi_spec_from_key(key, n, spec);
  *count = 0;
  spec->problem.policy.expected_calls = use == FOR_PLAN ? 1000 : 1;
  for (int i = 0; i < MATRICES && status == WLM_OK; i++) {
    wlm_stats stats = stats_of(k, i);
    if (use == FOR_CALL) { /* of whose matrix the size alone is known */
      wlmi_stats_estimate(stats.rows, stats.cols, stats.nnz, &stats);
      wlmi_cell_centre_of(&stats, 1, &stats);
    }
    status = wlmi_context_select(b->context, NULL, &stats, use == FOR_CALL ? WLMI_USE_ONE_CALL : WLMI_USE_MEASURED,
                                 spec, &decision);
    if (status == WLM_ERR_NOT_FOUND) status = WLM_OK; /* there is no such kernel */
    if (status == WLM_OK) note_choice(tallies, count, &decision, use, i);
  }
  return status;
}

/* A program to emit. variant: NULL = the gradients by argmax. */
typedef struct wanted {
  const wlmi_variant *variant;
  const wlmi_spec *spec;
} wanted;

/* Whether its text is there already, for these columns or for any. */
static int is_there(const build *b, const wanted *w) {
  char name[WLMI_VARIANT_NAME] = "";
  wlmi_hash purposes[WLMI_COLUMNS_KINDS];
  if (w->variant) wlmi_variant_print(wlmi_generator_families(wlmi_context_generator(b->context)), w->variant, name);
  wlmi_purposes(name, w->variant ? WLMI_HELPER_NONE : WLMI_HELPER_GRADIENT, w->spec, &device_of(b)->info.limits,
                purposes);
  for (int k = 0; k < WLMI_COLUMNS_KINDS; k++) {
    const wlmi_hash key = key_of(b, purposes[k]);
    for (int64_t i = 0; i < b->purpose_count; i++)
      if (wlmi_hash_equal(b->purposes[i].key, key)) return 1;
  }
  return 0;
}

static wlm_status emit(const build *b, const wanted *w, wlmi_program *program, wlmi_hash *text) {
  wlmi_generator *generator = wlmi_context_generator(b->context);
  const wlmi_limits *limits = &device_of(b)->info.limits;
  const wlmi_helper helper = w->variant ? WLMI_HELPER_NONE : WLMI_HELPER_GRADIENT;
  const wlm_status status = wlmi_generator_emit_program(generator, helper, w->variant, w->spec, limits, program);
  if (status == WLM_OK) *text = wlmi_hash_text(program->source);
  return status;
}

static wlm_status add_purposes(build *b, const wanted *w, wlmi_hash text) {
  wlmi_hash purposes[2];
  int count = 0;
  wlm_status status = wlmi_purposes_of(wlmi_context_generator(b->context), w->variant, w->spec,
                                       &device_of(b)->info.limits, text, purposes, &count);
  for (int i = 0; i < count && status == WLM_OK; i++) status = add_purpose(b, purposes[i]);
  return status;
}

/* Problems that often have the same text: with one head or several of as many columns, and of A or of A^T without
 * values. */
static wlmi_spec twin_of(const wlmi_spec *spec, int i) {
  wlmi_spec twin = *spec;
  wlm_problem *p = &twin.problem;
  if (i) {
    p->transpose = !p->transpose;
  } else {
    p->n = p->heads > 1 ? p->n / p->heads : 4 * p->n;
    p->heads = p->heads > 1 ? 1 : 4;
  }
  return twin;
}

static wlm_status add_twins(build *b, const wanted *w, wlmi_hash text) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < 2 && status == WLM_OK; i++) {
    const wlmi_spec spec = twin_of(w->spec, i);
    const wanted twin = {w->variant, &spec};
    wlmi_program program = {.source = NULL};
    wlmi_hash its;
    if (is_there(b, &twin)) continue;
    status = emit(b, &twin, &program, &its);
    wlmi_program_release(&program);
    if (status == WLM_OK && wlmi_hash_equal(its, text)) status = add_purposes(b, &twin, text);
    if (status == WLM_ERR_OUT_OF_MEMORY) break;
    status = WLM_OK; /* the variant is no candidate for it */
    wlmi_clear_error();
  }
  return status;
}

static wlm_status add_emitted(build *b, const wlmi_variant *variant, const wlmi_spec *spec) {
  const wanted w = {variant, spec};
  wlmi_program program = {.source = NULL};
  wlmi_hash text;
  wlm_status status = WLM_OK;
  if (is_there(b, &w)) return WLM_OK;
  WLM_TRY(emit(b, &w, &program, &text));
  WLM_TRY(add_program(b, &program));
  WLM_TRY(add_purposes(b, &w, text));
  status = add_twins(b, &w, text);
done:
  wlmi_program_release(&program);
  return status;
}

/* The gradients by argmax, whose blocks are as wide as n up to 32 columns. */
static wlm_status add_gradient(build *b, const wlmi_spec *product) {
  wlmi_spec narrow = wlmi_spec_gradient(product);
  wlm_status status = WLM_OK;
  for (narrow.problem.n = 1; narrow.problem.n <= 32 && status == WLM_OK; narrow.problem.n *= 2)
    status = add_emitted(b, NULL, &narrow);
  return status;
}

static wlm_status add_scattering(build *b, const kind *k, const wlmi_spec *spec) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < ROWS && status == WLM_OK; i++) {
    wlmi_decision decision = {0};
    const wlm_stats stats = stats_of(k, i);
    status = wlmi_context_select(b->context, NULL, &stats, WLMI_USE_SCATTER, spec, &decision);
    if (status == WLM_ERR_NOT_FOUND)
      status = WLM_OK; /* there is no such kernel */
    else if (status == WLM_OK)
      status = add_emitted(b, &decision.entries[0].variant, spec);
  }
  return status;
}

/* Adds kernels each of which serves the most matrices that those before it do not. */
static wlm_status add_chosen(build *b, const tally *tallies, int count, int kept, const wlmi_spec *spec) {
  wlm_status status = WLM_OK;
  const tally *t;
  uint64_t left = UINT64_MAX;
  for (int i = 0; i < kept && (t = most_serving(tallies, count, left)) && status == WLM_OK; i++) {
    status = add_emitted(b, &t->variant, spec);
    left &= ~t->serves;
  }
  return status;
}

/* Adds the variant that serves the most matrices and is also a candidate for few columns, which its vector divides. */
static wlm_status add_widest(build *b, tally *tallies, int count, const wlmi_spec *spec) {
  const wlmi_candidate_list *list = NULL;
  wlmi_spec narrow = *spec;
  wlm_status status;
  int kept = 0;
  if (narrow.problem.n > WIDE * narrow.problem.heads) narrow.problem.n -= WIDE * narrow.problem.heads;
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(b->context), &narrow, &device_of(b)->info.limits, &list));
  for (int i = 0; i < count; i++)
    if (wlmi_candidate_find(list, &tallies[i].variant)) tallies[kept++] = tallies[i];
  status = add_chosen(b, tallies, kept, 1, spec);
done:
  wlmi_candidates_drop(list);
  return status;
}

static wlm_status add_problem(build *b, const kind *k, wlm_type type) {
  const char *dense = wlmi_type_name(type);
  const int is_ptx = wlmi_common_gpu_ptx(device_of(b)->info.limits.arch) != 0;
  tally tallies[MOST_CHOSEN];
  char key[WLMI_SPEC_KEY];
  int count = 0;
  wlmi_spec spec;
  wlm_status status;
  snprintf(key, sizeof key, "op=%s,dense=%s,rowptr=i32,colind=i32,values=%s,sample=none%s", k->operator_name, dense,
           *k->values ? k->values : dense, k->rest);
  WLM_TRY(wlmi_spec_from_key(key, k->widths->wide[0], &spec));
  for (const int64_t *n = k->widths->common; *n; n++) {
    for (use use = FOR_CALL; use <= FOR_PLAN; use++) {
      if (!(k->scope & (use == FOR_CALL ? CALLS : PLANS))) continue;
      WLM_TRY(count_choices(b, k, key, *n, use, &spec, tallies, &count));
      WLM_TRY(add_chosen(b, tallies, count, kept[is_ptx][type != WLM_F32][use], &spec));
    }
    if (spec.problem.transpose && spec.problem.operation == WLM_SPMM) WLM_TRY(add_scattering(b, k, &spec));
  }
  if (spec.problem.want_argmax) WLM_TRY(add_gradient(b, &spec));
  device_of(b)->info.limits.any_width = 1;
  for (const int64_t *n = k->widths->wide; *n; n++) {
    WLM_TRY(count_choices(b, k, key, *n, FOR_ANY_WIDTH, &spec, tallies, &count));
    WLM_TRY(add_widest(b, tallies, count, &spec));
  }
done:
  device_of(b)->info.limits.any_width = 0;
  return status;
}

/* The kernels of a matrix with these index types. */
static wlm_status add_for_types(build *b, wlm_index rowptr_type, wlm_index colind_type) {
  const wlmi_limits *limits = &device_of(b)->info.limits;
  wlm_csr types_of = WLM_CSR_INIT;
  wlmi_hash purposes[WLMI_COLUMNS_KINDS];
  wlmi_spec spec;
  types_of.rowptr_type = rowptr_type;
  types_of.colind_type = colind_type;
  WLM_CHECK(wlmi_spec_of_types(&types_of, &spec));
  for (wlmi_helper helper = WLMI_HELPER_STATS; helper < WLMI_HELPERS; helper++) {
    wlmi_program program;
    WLM_CHECK(wlmi_generator_emit_program(wlmi_context_generator(b->context), helper, NULL, &spec, limits, &program));
    const wlm_status status = add_program(b, &program);
    wlmi_program_release(&program);
    if (status != WLM_OK) return status;
    wlmi_purposes("", helper, &spec, limits, purposes);
    WLM_CHECK(add_purpose(b, purposes[WLMI_COLUMNS_ANY]));
  }
  return WLM_OK;
}

static int is_wanted(const build *b, int k, wlm_type type) {
  const int of_type = kinds[k].scope & (type == WLM_F32 ? F32 : HALVES);
  return of_type && (type == WLM_F32 || !b->request->only_f32) && b->wanted >> k & 1;
}

static wlm_status choose_all(build *b) {
  for (int i = 0; i < KINDS * TYPES; i++)
    if (is_wanted(b, i / TYPES, types[i % TYPES])) WLM_CHECK(add_problem(b, &kinds[i / TYPES], types[i % TYPES]));
  for (int i = 0; i < 4; i++) WLM_CHECK(add_for_types(b, (wlm_index)(i / 2), (wlm_index)(i % 2)));
  return WLM_OK;
}

static wlm_status unknown_group(const char *name, size_t size) {
  wlmi_text known = {0}; /* "sum, mean" */
  for (int k = 0; k < KINDS; k++)
    if (!k || strcmp(kinds[k].group, kinds[k - 1].group))
      wlmi_text_printf(&known, "%s%s", k ? ", " : "", kinds[k].group);
  const wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%.*s' is no group of problems; there are %s",
                                      (int)size, name, known.data ? known.data : "none");
  wlmi_text_release(&known);
  return status;
}

/* The names are separated by commas; NULL = all. */
static wlm_status read_groups(const char *names, uint64_t *wanted) {
  *wanted = names ? 0 : UINT64_MAX;
  while (names && *names) {
    const size_t size = strcspn(names, ",");
    uint64_t found = 0;
    for (int k = 0; k < KINDS; k++)
      if (strlen(kinds[k].group) == size && !memcmp(kinds[k].group, names, size)) found |= UINT64_C(1) << k;
    if (!found) return unknown_group(names, size);
    *wanted |= found;
    names += size + (names[size] == ',');
  }
  return WLM_OK;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static wlm_status compile(void *user, int64_t i) {
  build *b = user;
  job *j = &b->jobs[b->begun + i];
  const wlmi_program program = {.source = j->source};
  if (j->image) return WLM_OK;
  j->is_compiled = 1;
  const wlm_status status = wlmi_compiling_device_compile(device_of(b), &program, &j->image, &j->size,
                                                          b->keeps_ptx ? &j->ptx : NULL, &j->ptx_size);
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s", j->name);
}

static wlm_status report(void *user, int64_t done) {
  const build *b = user;
  const wlmi_archive_request *r = b->request;
  const int stops = r->progress && r->progress(r->user, device_of(b)->info.limits.arch, done, b->count - b->begun);
  return stops ? wlmi_fail(WLM_ERR_CANCELLED, "the archive is not written") : WLM_OK;
}

static wlm_status build_for(build *b, int arch) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlmi_device *device;
  wlm_status status;
  options.database = options.kernel_cache = options.kernel_archive = "";
  options.system_database = b->request->system_database;
  b->begun = b->count;
  b->keeps_ptx = 0;
  for (int i = 0; i < b->request->arch_count; i++) b->keeps_ptx |= wlmi_common_gpu_ptx(b->request->archs[i]) == arch;
  WLM_TRY(wlmi_compiling_device_open(arch, &device));
  WLM_TRY(wlmi_context_create_on(device, &options, &b->context));
  WLM_TRY(choose_all(b));
  if (!b->request->compiles_nothing) status = wlmi_compile_each(b->count - b->begun, compile, report, b);
done:
  wlm_context_destroy(b->context);
  b->context = NULL;
  return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

static wlm_status write_archive(const build *b, int64_t *file_bytes) {
  wlmi_archived_kernel *kernels = NULL;
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(
      wlmi_alloc_array(b->count + b->purpose_count + 1, sizeof *kernels, "kernels of an archive", (void **)&kernels));
  for (int64_t i = 0; i < b->count; i++)
    kernels[count++] = (wlmi_archived_kernel){b->jobs[i].key, b->jobs[i].image, b->jobs[i].size};
  for (int64_t i = 0; i < b->purpose_count; i++) kernels[count++] = b->purposes[i];
  kernels[count++] = (wlmi_archived_kernel){.key = wlmi_generator_version()};
  status = wlmi_kernel_archive_write(b->request->path, kernels, count, file_bytes);
done:
  wlmi_free(kernels);
  return status;
}

wlm_status wlmi_archive_build(const wlmi_archive_request *request, wlmi_archive_summary *summary) {
  build b = {.request = request};
  wlm_status status;
  *summary = (wlmi_archive_summary){.file_bytes = 0};
  WLM_TRY(read_groups(request->groups, &b.wanted));
  WLM_TRY(wlmi_output_check(request->path));
  for (int i = 0; i < request->arch_count; i++) {
    WLM_TRY(build_for(&b, request->archs[i]));
    summary->kernels[i] = b.count - b.begun;
    for (int64_t k = b.begun; k < b.count; k++) {
      summary->compiled[i] += b.jobs[k].is_compiled;
      summary->bytes[i] += (int64_t)b.jobs[k].size;
    }
  }
  status = write_archive(&b, &summary->file_bytes);
done:
  for (int64_t i = 0; i < b.count; i++) {
    wlmi_free(b.jobs[i].source);
    wlmi_free(b.jobs[i].name);
    wlmi_free(b.jobs[i].image);
    wlmi_free(b.jobs[i].ptx);
  }
  wlmi_free(b.jobs);
  wlmi_free(b.purposes);
  return status;
}
