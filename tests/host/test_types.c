/* The types of B, C and the values through the public API and the command on the host device: sums of 16-bit types are
 * accumulated in f32, a checked run uses each type's own precision, and values are passed in the requested type. */
#include "core/problem/element.h"
#include "core/problem/spec.h"
#include "core/synth/input.h"
#include "support/calls.h"
#include "support/command.h"
#include "support/test.h"
#include "support/verified.h"
#include "tuner/tolerance.h"
#include "tuner/upload.h"

static wlm_context *context;

static int begin(void **state) {
  if (home_begin(state)) return 1;
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = "", .system_database = "");
  return wlm_context_create(&options, &context) != WLM_OK;
}

static int end(void **state) {
  wlm_context_destroy(context);
  return folder_end(state);
}

/* 4,096 ones in a row: a sum in f16 would stop at 2048, one in bf16 at 256. */
TEST(sums_are_accumulated_in_f32) {
  enum { ONES = 4096, N = 3 };
  static const char *const variants[] = {"host_row/rows=16,tile=16", "host_nnz/nonzeros=1024,tile=16"};
  static int64_t colind[ONES];
  static double dense[ONES * N];
  const int64_t rowptr[] = {0, ONES};
  for (int i = 0; i < ONES; i++) colind[i] = i;
  for (int type = WLM_F32; type <= WLM_F64; type++) {
    double c[N];
    for (int i = 0; i < ONES * N; i++) wlmi_element_put((wlm_type)type, dense, i, 1);
    wlm_csr csr = CSR(.rows = 1, .cols = ONES, .nnz = ONES, .rowptr = rowptr, .colind = colind, .rowptr_type = WLM_I64,
                      .colind_type = WLM_I64);
    wlm_problem problem = PROBLEM(.n = N, .dense_type = (wlm_type)type);
    OWN(wlm_matrix, matrix, wlm_matrix_create(context, &csr, NULL, &matrix));
    for (int v = 0; v < 2; v++) {
      OWN(wlm_plan, plan, wlm_plan_create_variant(context, matrix, &problem, variants[v], &plan));
      FREED void *workspace = malloc(wlm_plan_workspace_size(plan) + 1);
      assert_status(WLM_OK, test_execute(plan, dense, c, workspace));
      for (int j = 0; j < N; j++) assert_true(wlmi_element_get((wlm_type)type, c, j) == ONES);
    }
  }
}

/* Verification accepts correct results and refuses one that is two roundings off. */
static void check_verified(const wlmi_csr_host *csr, wlm_type type, wlm_type value_type) {
  wlm_problem problem = PROBLEM(.n = 24, .dense_type = type);
  wlm_execute_args call = EXECUTE_ARGS(.alpha = 1.5, .beta = -0.5);
  double error = -1;
  HOLD(wlmi_upload, upload, wlmi_upload_create_typed(context, csr, WLM_I32, WLM_I32, value_type, 1, &upload));
  HOLD(wlmi_operands, operands, wlmi_operands_create(context, upload.matrix, &problem, &call, 1, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 1, &verifier));
  OWN(wlm_plan, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  assert_status(WLM_OK, verify_plan(&operands, verifier, plan, &error));
  assert_true(error >= 0 && error <= wlmi_tolerance(&problem, wlm_matrix_stats(upload.matrix)->longest));
  for (int64_t i = 0;; i++) {
    const double value = wlmi_element_get(type, operands.output[0].buffer.memory, i);
    if (fabs(value) < 1) continue;
    wlmi_element_put(type, operands.output[0].buffer.memory, i, value * 1.5);
    assert_status(WLM_ERR_MISMATCH, wlmi_verify_result(verifier, &error));
    wlmi_element_put(type, operands.output[0].buffer.memory, i, value);
    assert_status(WLM_OK, wlmi_verify_result(verifier, &error));
    break;
  }
}

TEST(checked_runs) {
  HOLD(wlmi_csr_host, csr, wlmi_input_read("uniform:rows=300,d=9", &csr));
  wlmi_free(csr.values);
  csr.values = wlmi_alloc((size_t)csr.nnz * sizeof *csr.values);
  assert_non_null(csr.values);
  for (int64_t p = 0; p < csr.nnz; p++) csr.values[p] = 0.5f + (float)(p * 37 % 101) / 100;
  for (int type = WLM_F32; type <= WLM_F64; type++) check_verified(&csr, (wlm_type)type, (wlm_type)type);
  check_verified(&csr, WLM_F16, WLM_F32);
  check_verified(&csr, WLM_BF16, WLM_F32);
}

/* Tolerances follow the precision: one rounding for 16-bit types, and far less for f64 than for f32. */
TEST(tolerances) {
  double of[WLM_F64 + 1];
  for (int type = WLM_F32; type <= WLM_F64; type++) {
    wlm_problem problem = PROBLEM(.dense_type = (wlm_type)type);
    of[type] = wlmi_tolerance(&problem, 100);
  }
  assert_true(of[WLM_F64] < 1e-8 * of[WLM_F32]);
  assert_true(of[WLM_F16] > of[WLM_F32] && of[WLM_F16] < 0x1.1p-11);
  assert_true(of[WLM_BF16] > of[WLM_F16] && of[WLM_BF16] < 0x1.1p-8);
}

TEST(commands) {
  static const char *const types[] = {"f32", "f16", "bf16", "f64"};
  static const char input[] = "uniform:rows=400,d=7";
  for (int i = 0; i < 4; i++) {
    char key[32];
    snprintf(key, sizeof key, "dense=%s", types[i]);
    command c = RUN(0, "run", input, "--device", "host", "-n", "5,16", "--type", types[i], "--bias", "--check");
    assert_contains(c.out, "verified");
    RUN(0, "tune", input, "--device", "host", "-n", "8", "--type", types[i]);
    c = RUN(0, "explain", input, "--device", "host", "-n", "8", "--type", types[i]);
    assert_contains(c.out, key, "fingerprint");
  }
}

GROUP(begin, end)
