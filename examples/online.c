/* A plan that tries other kernels on a small share of its calls, switches to the fastest and stores the result. Runs on
 * the host device, where device pointers are ordinary pointers:
 *   cc online.c $(pkg-config --cflags --libs warploom) && ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <warploom/warploom_tune.h>

static void check(wlm_status status) {
  if (status == WLM_OK) return;
  fprintf(stderr, "%s: %s\n", wlm_status_message(status), wlm_error_detail());
  exit(1);
}

int main(void) {
  enum { ROWS = 500, DEGREE = 6, N = 32 };
  static int32_t rowptr[ROWS + 1], colind[ROWS * DEGREE];
  static float b[ROWS * N], c[ROWS * N];
  for (int i = 0; i <= ROWS; i++) rowptr[i] = i * DEGREE;
  for (int p = 0; p < ROWS * DEGREE; p++) colind[p] = p * 7 % ROWS;
  for (int i = 0; i < ROWS * N; i++) b[i] = 1;

  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context;
  options.device = "host";
  options.record = 1; /* records problems for which nothing similar was tuned, for `warploom tune --recorded` */
  check(wlm_context_create(&options, &context));
  wlm_csr csr = WLM_CSR_INIT; /* no values: every edge is 1 */
  csr.rows = csr.cols = ROWS, csr.nnz = ROWS * DEGREE;
  csr.rowptr = rowptr, csr.colind = colind;
  wlm_matrix *matrix;
  check(wlm_matrix_create(context, &csr, NULL, &matrix));

  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = N;
  wlm_plan *plan; /* compiles and checks what it will try */
  check(wlm_plan_create_online(context, matrix, &problem, NULL, &plan));
  wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  args.b = b, args.c = c;
  for (int call = 0; call < 3000; call++) check(wlm_plan_execute(plan, &args));

  wlm_online_state state = WLM_ONLINE_STATE_INIT;
  check(wlm_plan_online_state(plan, &state));
  printf("%s after %lld calls, %lld of them trials\nc[0] = %g\n", state.variant, (long long)state.calls,
         (long long)state.trials, c[0]);

  check(wlm_plan_online_close(plan)); /* stores what was decided in the database */
  wlm_plan_destroy(plan);
  wlm_matrix_destroy(matrix);
  wlm_context_destroy(context);
}
