/* Prints, for every case and matrix, the kernel that a plan and a single call get and a hash of what they compute. The
 * test builds it with the full library and with an exported one and compares what they print.
 *   choices DEVICE DATABASE [WIDTH] [DRIVER ARCH [STATISTICS SYSTEM_DATABASE]]
 * WIDTH replaces the widths of the cases where it is not 0. DRIVER is the fake driver with a GPU of this architecture;
 * then nothing is computed. STATISTICS is a file of exported_statistics, for which an H200 chooses instead. */
#include <dlfcn.h>
#include <stdio.h>

#include "exported/cases.h"
#ifdef WLM_TESTS_FAKE_DRIVER
#include "fake_cuda/fake_cuda.h"
#endif

enum { CALLS = 2, MOST = 256 * 1024 };

static const int64_t expected_calls[CALLS] = {1, 1000000};
static int computes = 1;
/* Those behind WORKSPACE are written. */
enum { B, X, EDGES, LEFT, RIGHT, SOFTMAX, DELTA, WORKSPACE, C, DB, DVALUES, DRIGHT, ARGMAX, ARRAYS };
static double arrays[ARRAYS][MOST]; /* of any type */
static wlm_message_args message = WLM_MESSAGE_ARGS_INIT;
static wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;

/* Numbers whose bytes are sensible in each type: small in f16, f32 and f64. */
static void fill(wlm_type type, double *array) {
  static const uint16_t halves[] = {0x3c00, 0xbc00, 0x3800, 0x4000, 0xb400, 0x3e00, 0x2e66};
  uint32_t state = 5;
  for (int64_t i = 0; i < MOST; i++) {
    const int drawn = (int)(exported_draw(&state) >> 20) - 2048;
    if (type == WLM_F64) array[i] = drawn / 512.0;
    if (type == WLM_F32) ((float *)array)[i] = (float)drawn / 512;
    if (type == WLM_F16) ((uint16_t *)array)[i] = halves[(unsigned)drawn % 7];
  }
}

static uint64_t hash(uint64_t h, const void *data, size_t size) {
  for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  return h;
}

static wlm_execute_args arguments(const exported_case *c) {
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  const wlm_problem *p = &c->problem;
  const wlm_type wide = p->dense_type == WLM_F64 ? WLM_F64 : WLM_F32;
  for (int i = B; i < WORKSPACE; i++) fill(i < LEFT ? p->dense_type : wide, arrays[i]);
  for (int i = WORKSPACE; i < ARRAYS; i++) memset(arrays[i], 0, sizeof arrays[i]);
  args.workspace = arrays[WORKSPACE], args.workspace_size = sizeof arrays[WORKSPACE];
  if (p->operation == WLM_MESSAGE) {
    message.operands[0] = arrays[B], message.operands[1] = arrays[EDGES], message.results[0] = arrays[C];
    args.operands = &message;
    return args;
  }
  args.b = arrays[B], args.c = arrays[C], args.dvalues = arrays[DVALUES];
  if (p->operation == WLM_SDDMM || p->operation == WLM_ATTENTION) args.x = arrays[X];
  if (p->operation == WLM_ATTENTION) {
    attention.left = arrays[LEFT], attention.right = arrays[RIGHT], attention.softmax = arrays[SOFTMAX];
    attention.delta = arrays[DELTA], attention.dright = arrays[DRIGHT];
    attention.dscores = arrays[DVALUES];
    args.attention = &attention, args.db = arrays[DB];
  }
  if (p->want_argmax) args.argmax = arrays[ARGMAX];
  return args;
}

static uint64_t results(void) {
  uint64_t h = hash(14695981039346656037u, arrays[SOFTMAX], sizeof arrays[SOFTMAX]);
  for (int i = C; i < ARRAYS; i++) h = hash(h, arrays[i], sizeof arrays[i]);
  return h;
}

static void show(int index, int matrix, const char *what, const char *variant, wlm_status status) {
  if (status == WLM_OK)
    printf("case %d matrix %d %s: %s %016llx\n", index, matrix, what, variant,
           computes ? (unsigned long long)results() : 0ull);
  else
    printf("case %d matrix %d %s: %s: %s\n", index, matrix, what, wlm_status_name(status), wlm_error_detail());
}

/* Of B. */
static wlm_status run_gradient(wlm_context *context, const wlm_matrix *matrix, const exported_case *c,
                               wlm_execute_args args) {
  wlm_problem problem = c->problem;
  wlm_plan *plan;
  problem.operation = WLM_ARGMAX_GRADIENT;
  args.x = arrays[X], args.argmax_db = arrays[DB];
  wlm_status status = wlm_plan_create(context, matrix, &problem, &plan);
  if (status == WLM_OK) status = wlm_plan_execute(plan, &args);
  wlm_plan_destroy(plan);
  return status;
}

static wlm_status run_plan(wlm_context *context, const wlm_matrix *matrix, wlm_plan *plan, const exported_case *c) {
  void *prepared = wlm_plan_prepared_size(plan) ? malloc(wlm_plan_prepared_size(plan)) : NULL;
  wlm_execute_args args = arguments(c);
  wlm_status status = prepared ? wlm_plan_prepare(plan, prepared, NULL) : WLM_OK;
  if (status == WLM_OK) status = wlm_plan_execute(plan, &args);
  if (status == WLM_OK && c->problem.want_argmax) status = run_gradient(context, matrix, c, args);
  free(prepared);
  return status;
}

/* A kernel of the fake driver measures nothing. */
static wlm_stats stats_of(const exported_matrix *m) {
  wlm_stats s = WLM_STATS_INIT;
  int64_t lengths[4096] = {0}, left = m->rows / 100 + 1, top = 0;
  double squares = 0;
  s.rows = m->rows, s.cols = m->cols, s.nnz = m->nnz, s.mean = (double)m->nnz / (double)m->rows;
  for (int64_t i = 0; i < m->rows; i++) {
    const int64_t length = m->wide[i + 1] - m->wide[i];
    lengths[length]++;
    squares += ((double)length - s.mean) * ((double)length - s.mean);
    s.empty_rows += !length;
    s.rows_le_4 += length <= 4;
    s.rows_le_16 += length <= 16;
    if (length > s.longest) s.longest = length;
  }
  for (int64_t length = s.longest; left > 0; left -= lengths[length], length--)
    top += length * (lengths[length] < left ? lengths[length] : left);
  s.cv = __builtin_sqrt(squares / (double)m->rows) / s.mean;
  s.top_share = (double)top / (double)m->nnz;
  return s;
}

static void run_plans(wlm_context *context, int index, int number, const exported_case *c, const exported_matrix *m) {
  const wlm_stats_grade grades[] = {computes ? WLM_STATS_MEASURED : WLM_STATS_GIVEN, WLM_STATS_ESTIMATED};
  const wlm_csr csr = exported_csr(c, m);
  const wlm_stats given = stats_of(m);
  for (int i = 0; i < 2 * CALLS; i++) {
    wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
    wlm_problem problem = c->problem;
    wlm_matrix *matrix = NULL;
    wlm_plan *plan = NULL;
    char what[64];
    options.grade = grades[i / CALLS];
    if (options.grade == WLM_STATS_GIVEN) options.stats = &given;
    problem.policy.expected_calls = expected_calls[i % CALLS];
    snprintf(what, sizeof what, "%s for %lld calls", i / CALLS ? "estimated" : "known",
             (long long)problem.policy.expected_calls);
    wlm_status status = wlm_matrix_create(context, &csr, &options, &matrix);
    if (status == WLM_OK) status = wlm_plan_create(context, matrix, &problem, &plan);
    char variant[128] = "";
    if (status == WLM_OK) snprintf(variant, sizeof variant, "%s", wlm_plan_variant(plan));
    if (status == WLM_OK) status = run_plan(context, matrix, plan, c);
    show(index, number, what, variant, status);
    wlm_plan_destroy(plan);
    wlm_matrix_destroy(matrix);
  }
}

static void run_one(wlm_context *context, int index, int number, int64_t width) {
  exported_case c = exported_case_of(index);
  exported_matrix m = exported_matrix_of(number);
  const wlm_csr csr = exported_csr(&c, &m);
  if (width) c.problem.n = width;
  run_plans(context, index, number, &c, &m);
  if (c.problem.operation != WLM_SDDMM) { /* a single call names no kernel, but its bits depend on it */
    const wlm_execute_args args = arguments(&c);
    const wlm_status status = wlm_spmm(context, &csr, &c.problem, &args);
    show(index, number, "one call", "", status);
  }
  exported_matrix_free(&m);
}

/* A plan's kernel where only statistics are known; nothing of the matrix is read. A matrix of which the statistics are
 * estimated has another size, because one of a measured size is measured to see whether it is the same. */
static void choose_plan(wlm_context *context, int64_t index, const exported_statistics *s, wlm_stats_grade grade,
                        int64_t calls) {
  static const int64_t nothing[2];
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlm_matrix *matrix = NULL;
  wlm_plan *plan = NULL;
  csr.rows = s->stats.rows, csr.cols = s->stats.cols, csr.nnz = s->stats.nnz + (grade == WLM_STATS_ESTIMATED);
  csr.rowptr = csr.colind = nothing;
  csr.values = s->has_values ? nothing : NULL;
  options.grade = grade;
  if (grade == WLM_STATS_GIVEN) options.stats = &s->stats;
  problem.n = s->n;
  problem.operation = s->attention ? WLM_ATTENTION : WLM_SPMM;
  problem.policy.expected_calls = calls;
  wlm_status status = wlm_matrix_create(context, &csr, &options, &matrix);
  if (status == WLM_OK) status = wlm_plan_create(context, matrix, &problem, &plan);
  printf("statistics %lld n = %lld%s%s, %s, %lld calls: %s\n", (long long)index, (long long)s->n,
         s->has_values ? " values" : "", s->attention ? " attention" : "",
         grade == WLM_STATS_GIVEN ? "given" : "estimated", (long long)calls,
         status == WLM_OK ? wlm_plan_variant(plan) : wlm_error_detail());
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
}

static int choose_for_statistics(wlm_context *context, const char *path) {
  exported_statistics s;
  FILE *file = fopen(path, "rb");
  for (int64_t i = 0; file && fread(&s, sizeof s, 1, file) == 1; i++)
    for (int k = 0; k < 2 * CALLS; k++)
      choose_plan(context, i, &s, k / CALLS ? WLM_STATS_ESTIMATED : WLM_STATS_GIVEN, expected_calls[k % CALLS]);
  if (file) fclose(file);
  return file ? 0 : 4;
}

static void log_line(void *user, wlm_log_level level, const char *message) {
  (void)user;
  if (level <= WLM_LOG_WARNING) printf("log: %s\n", message);
}

int main(int argc, char **argv) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  int cases = EXPORTED_CASES;
  if (argc < 3) return 2;
  const int64_t width = argc > 3 ? atoll(argv[3]) : 0;
#ifdef WLM_TESTS_FAKE_DRIVER
  void *library = argc > 5 ? dlopen(argv[4], RTLD_NOW | RTLD_LOCAL) : NULL;
  fake_cuda *fake = library ? dlsym(library, FAKE_CUDA_STATE) : NULL;
  if (!fake) return 3;
  fake->any_code = 1;
  fake->arch = atoi(argv[5]);
  fake->processors = 132;
  computes = 0;
  cases = 1;
  if (argc > 7) {
    fake->name = "NVIDIA H200";
    fake->l2_bytes = 60 << 20;
    options.system_database = argv[7];
  }
#endif
  setvbuf(stdout, NULL, _IOLBF, 0);
  wlm_set_log(log_line, NULL, WLM_LOG_WARNING);
  options.device = argv[1];
  options.database = argv[2];
  wlm_status status = wlm_context_create(&options, &context);
  if (status != WLM_OK) {
    printf("%s: %s\n", wlm_status_name(status), wlm_error_detail());
    return 1;
  }
  if (argc > 6) {
    const int result = choose_for_statistics(context, argv[6]);
    wlm_context_destroy(context);
    return result;
  }
  for (int i = 0; i < cases; i++)
    for (int m = 0; m < EXPORTED_MATRICES; m++)
      if (m < exported_case_of(i).measured || m == EXPORTED_MATRICES - 1) run_one(context, i, m, width);
  wlm_context_destroy(context);
  return 0;
}
