
#include "support/properties.h"
#include "runtime/dispatch/plan.h"
#include "support/bare_plan.h"
#include "support/calls.h"
#include "support/exact_matrix.h"
#include "support/loaded.h"
#include "support/test.h"

enum { MAX_KERNELS = 512, SHIFT = 5 };

static const properties *of;
static wlmi_device *device;
static wlmi_generator *generator;

static float *make_dense(int64_t rows, uint64_t seed) {
  float *made = exact_array(rows * of->n, sizeof *made);
  exact_fill(made, rows * of->n, 1, 4, seed);
  return made;
}

/* ---- kernels, kept from one test to the next -------------------------------------------------------------- */

typedef struct kernel {
  wlmi_spec spec;
  loaded loaded;
} kernel;

static kernel kept[MAX_KERNELS];
static int kept_count;

static const kernel *kernel_of(const wlmi_spec *spec, const char *variant) {
  char key[WLMI_SPEC_KEY], other[WLMI_SPEC_KEY];
  wlmi_spec_key(spec, key);
  for (int i = 0; i < kept_count; i++) {
    wlmi_spec_key(&kept[i].spec, other);
    if (!strcmp(kept[i].loaded.program.variant, variant) && !strcmp(key, other)) return &kept[i];
  }
  assert_true(kept_count < MAX_KERNELS);
  kernel *k = &kept[kept_count++];
  k->spec = *spec;
  k->loaded = loaded_variant(device, generator, variant, spec);
  return k;
}

/* Loads `variants` variants of each family; returns their number. */
static int kernels_of(const wlm_problem *problem, int variants, const kernel *list[MAX_KERNELS]) {
  wlm_csr csr = CSR(.rowptr_type = WLM_I64, .values = &csr /* the spec depends only on whether there are values */);
  int count = 0;
  GET(wlmi_spec, spec, wlmi_spec_make(problem, &csr, &spec));
  GET(const wlmi_candidate_list *, names, wlmi_generator_describe(generator, &spec, &device->info.limits, &names));
  for (int64_t first = 0, end; first < names->count; first = end) {
    const size_t size = strcspn(names->candidates[first].variant, "/") + 1;
    for (end = first;
         end < names->count && !strncmp(names->candidates[end].variant, names->candidates[first].variant, size);)
      end++;
    const int64_t most = variants < end - first ? variants : end - first;
    for (int64_t i = 0; i < most; i++)
      list[count++] = kernel_of(&spec, names->candidates[first + i * (end - first) / most].variant);
  }
  wlmi_candidates_drop(names);
  assert_true(count > 0);
  return count;
}

static wlm_problem problem_of(wlm_message message, wlm_reduce reduce) {
  return (wlm_problem)PROBLEM(.n = of->n, .message = message, .reduce = reduce);
}

/* ---- running them -------------------------------------------------------------------------------------------- */

typedef struct call {
  wlm_plan plan;
  exact_matrix walked; /* A itself, if the program walks it */
  void *workspace, *prepared;
} call;

static void call_begin(call *c, const kernel *k, const exact_matrix *m) {
  *c = (call){0};
  if (k->loaded.program.walks_a) {
    c->walked = exact_transposed(m);
    for (int64_t p = 0; m->order && p < m->a.nnz; p++) c->walked.order[p] = m->order[c->walked.order[p]];
    exact_settle(&c->walked);
    m = &c->walked;
  }
  const wlm_csr csr = exact_csr(m);
  assert_status(WLM_OK, bare_plan_fill(&c->plan, device, &k->loaded.program, k->loaded.kernels, &csr, &k->spec));
  c->plan.bound.args.order = m->order;
  c->workspace = malloc(wlm_plan_workspace_size(&c->plan) + 1);
  c->prepared = malloc(wlm_plan_prepared_size(&c->plan) + 1);
  assert_true(c->workspace && c->prepared);
  assert_status(WLM_OK, wlm_plan_prepare(&c->plan, c->prepared, NULL));
}

static void call_end(call *c) {
  exact_matrix_release(&c->walked);
  free(c->workspace);
  free(c->prepared);
}

/* free() */
static float *product_with(const kernel *k, const exact_matrix *m, const float *b, int64_t *arg) {
  call c;
  const size_t size = (size_t)(m->a.rows * of->n) * sizeof(float);
  float *made = malloc(size);
  assert_non_null(made);
  memset(made, 0xff, size);
  call_begin(&c, k, m);
  assert_status(WLM_OK, test_execute_argmax(&c.plan, b, made, arg, c.workspace));
  call_end(&c);
  return made;
}

static float *product(const kernel *k, const exact_matrix *m, const float *b) { return product_with(k, m, b, NULL); }

static void expect(const kernel *k, const char *what, int64_t count, const float *got, const float *wanted) {
  for (int64_t i = 0; i < count; i++)
    if (memcmp(&got[i], &wanted[i], sizeof *got))
      fail_msg("%s, %s.%s: %s: row %lld, column %lld is %.9g, not %.9g", k->loaded.program.variant,
               wlmi_message_name(k->spec.problem.message), wlmi_reduce_name(k->spec.problem.reduce), what,
               (long long)(i / of->n), (long long)(i % of->n), (double)got[i], (double)wanted[i]);
}

static double dot(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
  return sum;
}

static void release(float *const made[], int count) {
  for (int i = 0; i < count; i++) free(made[i]);
}

/* ---- the properties ------------------------------------------------------------------------------------------ */

/* A (3 X - 2 Y) = 3 A X - 2 A Y, and where values are multiplied (3 A - 2 A') X = 3 A X - 2 A' X. */
TEST(sum_is_linear) {
  const kernel *list[MAX_KERNELS];
  HELD(exact_matrix) m = exact_matrix_make(of->longest), other = exact_matrix_make(of->longest),
                     mixed = exact_matrix_make(of->longest);
  const int64_t count = m.a.rows * of->n;
  float *x = make_dense(m.a.cols, 2), *y = make_dense(m.a.cols, 3), *xy = exact_mix(x, y, m.a.cols * of->n);
  exact_fill(other.a.values, other.a.nnz, 1, 2, 4);
  for (int64_t p = 0; p < m.a.nnz; p++) mixed.a.values[p] = 3 * m.a.values[p] - 2 * other.a.values[p];
  for (int message = WLM_MUL; message <= WLM_COPY_B; message++) {
    const wlm_problem problem = problem_of((wlm_message)message, WLM_SUM);
    const int kernels = kernels_of(&problem, message == WLM_MUL ? of->variants : 1, list);
    for (int i = 0; i < kernels; i++) {
      float *ax = product(list[i], &m, x), *ay = product(list[i], &m, y), *other_x = product(list[i], &other, x);
      float *of_b[] = {product(list[i], &m, xy), exact_mix(ax, ay, count)};
      float *of_a[] = {product(list[i], &mixed, x), exact_mix(ax, other_x, count)};
      expect(list[i], "3 A X - 2 A Y", count, of_b[0], of_b[1]);
      if (message == WLM_MUL) expect(list[i], "3 A X - 2 A' X", count, of_a[0], of_a[1]);
      release((float *[]){ax, ay, other_x, of_b[0], of_b[1], of_a[0], of_a[1]}, 7);
    }
  }
  release((float *[]){x, y, xy}, 3);
}

/* A repeated edge changes neither max nor min, and the argmax index is its first position. */
TEST(max_is_idempotent) {
  const kernel *list[MAX_KERNELS];
  HELD(exact_matrix) m = exact_matrix_make(of->longest), t = exact_twice(&m);
  const int64_t count = m.a.rows * of->n;
  FREED float *b = make_dense(m.a.cols, 2);
  FREED int64_t *once = exact_array(count, sizeof *once), *again = exact_array(count, sizeof *again);
  for (int reduce = WLM_MAX; reduce <= WLM_MIN; reduce++) {
    wlm_problem problem = problem_of(WLM_MUL, (wlm_reduce)reduce);
    problem.want_argmax = 1;
    problem.argmax_type = WLM_I64;
    const int kernels = kernels_of(&problem, reduce == WLM_MAX ? of->variants : 1, list);
    for (int i = 0; i < kernels; i++) {
      float *of_m = product_with(list[i], &m, b, once), *of_t = product_with(list[i], &t, b, again);
      expect(list[i], "edges twice", count, of_t, of_m);
      for (int64_t e = 0; e < count; e++) {
        const int64_t first = once[e] < 0 ? -1 : m.a.rowptr[e / of->n] + once[e];
        if (again[e] != first)
          fail_msg("%s: position %lld, not %lld", list[i]->loaded.program.variant, (long long)again[e],
                   (long long)first);
      }
      release((float *[]){of_m, of_t}, 2);
    }
  }
}

TEST(edges_of_a_row_come_in_any_order) {
  const kernel *list[MAX_KERNELS];
  for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++) {
    HELD(exact_matrix) m = exact_matrix_make(of->longest);
    FREED float *b = make_dense(m.a.cols, 2);
    if (reduce == WLM_PROD) exact_fill_powers(m.a.values, m.a.nnz, 8);
    if (reduce == WLM_PROD) exact_fill_powers(b, m.a.cols * of->n, 9);
    HELD(exact_matrix) t = exact_permuted(&m);
    const wlm_problem problem = problem_of(WLM_MUL, (wlm_reduce)reduce);
    const int kernels = kernels_of(&problem, reduce == WLM_SUM ? of->variants : 1, list);
    for (int i = 0; i < kernels; i++) {
      float *made[] = {product(list[i], &m, b), product(list[i], &t, b)};
      expect(list[i], "edges in another order", m.a.rows * of->n, made[1], made[0]);
      release(made, 2);
    }
  }
}

TEST(mean_is_sum_over_degree) {
  const kernel *sums[MAX_KERNELS], *means[MAX_KERNELS];
  const wlm_problem of_sum = problem_of(WLM_MUL, WLM_SUM), of_mean = problem_of(WLM_MUL, WLM_MEAN);
  const int kernels = kernels_of(&of_sum, 1, sums);
  HELD(exact_matrix) m = exact_matrix_make(of->longest);
  FREED float *b = make_dense(m.a.cols, 2);
  assert_int_equal(kernels_of(&of_mean, 1, means), kernels);
  for (int i = 0; i < kernels; i++) {
    float *sum = product(sums[i], &m, b), *mean = product(means[i], &m, b);
    for (int64_t row = 0; row < m.a.rows; row++) {
      const int64_t degree = m.a.rowptr[row + 1] - m.a.rowptr[row];
      for (int64_t j = 0; j < of->n && degree; j++) sum[row * of->n + j] /= (float)degree;
    }
    expect(means[i], "sum / degree", m.a.rows * of->n, mean, sum);
    release((float *[]){sum, mean}, 2);
  }
}

/* All variants agree, wherever they split rows. A variant also agrees with itself after all edges have moved by some
 * positions. */
TEST(where_rows_are_split_does_not_matter) {
  static const char squares[] = "message=a*b;init=0;reduce=acc+x*x;combine=acc+x;order=any";
  const kernel *list[MAX_KERNELS];
  HELD(exact_matrix) m = exact_matrix_make(of->longest), moved = exact_shifted(&m, SHIFT);
  const int64_t count = m.a.rows * of->n;
  FREED float *b = make_dense(m.a.cols, 2);
  int64_t *args[3];
  for (int i = 0; i < 3; i++) args[i] = exact_array(count + of->n, sizeof *args[i]);
  for (int number = 0; number < 3; number++) {
    wlm_problem problem = problem_of(WLM_MUL, (const wlm_reduce[]){WLM_SUM, WLM_MAX, WLM_CUSTOM}[number]);
    problem.want_argmax = number == 1;
    problem.argmax_type = WLM_I64;
    if (number == 2) problem.custom = squares;
    const int kernels = kernels_of(&problem, number < 2 ? of->variants : (of->variants + 1) / 2, list);
    FREED float *wanted = product_with(list[0], &m, b, problem.want_argmax ? args[0] : NULL);
    for (int i = 0; i < kernels; i++) {
      float *made[] = {product_with(list[i], &m, b, problem.want_argmax ? args[1] : NULL),
                       product_with(list[i], &moved, b, problem.want_argmax ? args[2] : NULL)};
      expect(list[i], list[0]->loaded.program.variant, count, made[0], wanted);
      expect(list[i], "some edges further on", count, made[1] + of->n, wanted);
      for (int64_t e = 0; e < count && problem.want_argmax; e++) {
        assert_int_equal(args[1][e], args[0][e]);
        assert_int_equal(args[2][e + of->n], args[0][e] < 0 ? -1 : args[0][e] + SHIFT);
      }
      release(made, 2);
    }
  }
  for (int i = 0; i < 3; i++) free(args[i]);
}

TEST(transposed_twice_is_the_same) {
  const kernel *plain[MAX_KERNELS], *turned[MAX_KERNELS];
  wlm_problem problem = problem_of(WLM_MUL, WLM_SUM);
  const int kernels = kernels_of(&problem, 1, plain);
  HELD(exact_matrix) m = exact_matrix_make(of->longest), t = exact_transposed(&m);
  exact_settle(&t);
  HELD(exact_matrix) back = exact_transposed(&t);
  FREED float *b = make_dense(m.a.cols, 2);
  problem.transpose = 1;
  const int count = kernels_of(&problem, 1, turned);
  assert_true(count >= kernels);
  for (int i = 0; i < count; i++) {
    float *made[] = {product(plain[i % kernels], &m, b), product(turned[i], &back, b)};
    expect(turned[i], "transposed twice", m.a.rows * of->n, made[1], made[0]);
    release(made, 2);
  }
}

/* <D, A B> = <A^T D, B>: the gradient with respect to B. */
TEST(transpose_is_the_adjoint) {
  const kernel *plain[MAX_KERNELS], *turned[MAX_KERNELS];
  wlm_problem problem = problem_of(WLM_MUL, WLM_SUM);
  const int kernels = kernels_of(&problem, 1, plain);
  HELD(exact_matrix) m = exact_matrix_make(of->longest), t = exact_transposed(&m);
  float *b = make_dense(m.a.cols, 2), *d = make_dense(m.a.rows, 3);
  problem.transpose = 1;
  const int count = kernels_of(&problem, 1, turned);
  assert_true(count >= kernels);
  for (int i = 0; i < count; i++) {
    float *ab = product(plain[i % kernels], &m, b), *td = product(turned[i], &t, d);
    assert_true(dot(d, ab, m.a.rows * of->n) == dot(td, b, m.a.cols * of->n));
    release((float *[]){ab, td}, 2);
  }
  release((float *[]){b, d}, 2);
}

/* <D, A B> = sum of a_p dvalues_p, because the product is linear in A. All SDDMM variants give the same bits. */
TEST(edges_are_the_gradient) {
  const kernel *plain[MAX_KERNELS], *list[MAX_KERNELS];
  wlm_problem problem = problem_of(WLM_MUL, WLM_SUM);
  HELD(exact_matrix) m = exact_matrix_make(of->longest);
  float *b = make_dense(m.a.cols, 2), *d = make_dense(m.a.rows, 3), *made[2];
  kernels_of(&problem, 1, plain);
  float *ab = product(plain[0], &m, b);
  problem.operation = WLM_SDDMM;
  const int kernels = kernels_of(&problem, of->variants, list);
  for (int i = 0; i < 2; i++) made[i] = exact_array(m.a.nnz, sizeof *made[i]);
  for (int i = 0; i < kernels; i++) {
    call c;
    float *to = made[i > 0];
    memset(to, 0xff, (size_t)m.a.nnz * sizeof *to);
    call_begin(&c, list[i], &m);
    assert_status(WLM_OK, test_execute_sddmm(&c.plan, d, b, to, c.workspace));
    call_end(&c);
    assert_memory_equal(to, made[0], (size_t)m.a.nnz * sizeof *to);
  }
  assert_true(dot(d, ab, m.a.rows * of->n) == dot(m.a.values, made[0], m.a.nnz));
  release((float *[]){ab, b, d, made[0], made[1]}, 5);
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

FIXTURE(begin) { return of->open(&device) != WLM_OK || wlmi_generator_create(NULL, &generator) != WLM_OK; }

FIXTURE(end) {
  for (int i = 0; i < kept_count; i++) loaded_release(&kept[i].loaded);
  wlmi_generator_destroy(generator);
  device->ops->close(device);
  return 0;
}

GROUP(begin, end)

int properties_run(const properties *p) {
  of = p;
  return test_run();
}
