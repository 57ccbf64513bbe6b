/* Gradients on a GPU: A^T built there has the same bits as on the host, and every candidate for products with A^T and
 * for gradients is correct. */
#include "core/csr/transpose.h"
#include "support/backward_check.h"
#include "support/calls.h"
#include "support/gpu_fixture.h"
#include "support/test.h"
#include "tuner/verify.h"

static void *narrowed(const wlmi_csr_host *a, wlm_index type) {
  int32_t *rowptr = wlmi_alloc((size_t)(a->rows + 1) * sizeof *rowptr);
  if (type == WLM_I64) {
    wlmi_free(rowptr);
    return NULL;
  }
  for (int64_t row = 0; row <= a->rows; row++) rowptr[row] = (int32_t)a->rowptr[row];
  return rowptr;
}

TEST(transpose_has_the_hosts_bits) {
  test_needs_nvrtc();
  static const char *const matrices[] = {"twin:youtube,scale=0.2", "twin:web-google,scale=0.05",
                                         "uniform:rows=300,d=0"};
  for (int number = 0; number < 6; number++) {
    const wlm_index type = (wlm_index)(number % 2);
    MAKE(fixture, f, matrices[number / 2], type);
    WLM_FREED void *narrow = narrowed(&f.csr, type);
    wlm_csr host = *wlmi_matrix_csr(f.upload.matrix);
    host.rowptr = narrow ? narrow : f.csr.rowptr;
    host.colind = f.csr.colind;
    wlm_problem problem = PROBLEM(.transpose = 1);
    GET(wlmi_matrix_view, view, wlmi_matrix_see(f.upload.matrix, &problem, &view));
    const size_t offset = wlmi_index_size(type);
    const size_t sizes[] = {(size_t)(host.cols + 1) * offset, (size_t)host.nnz * 4, (size_t)host.nnz * offset};
    const void *there[] = {view.csr.rowptr, view.csr.colind, view.order};
    void *expected[3], *got[3];
    for (int i = 0; i < 3; i++) {
      expected[i] = wlmi_alloc(sizes[i]);
      got[i] = wlmi_alloc(sizes[i]);
      if (sizes[i]) assert_status(WLM_OK, f.device->ops->copy_out(f.device, NULL, got[i], there[i], sizes[i]));
    }
    assert_status(WLM_OK, wlmi_transpose_pattern(&host, expected[0], expected[1], expected[2]));
    for (int i = 0; i < 3; i++) {
      assert_memory_equal(got[i], expected[i], sizes[i]);
      wlmi_free(got[i]);
      wlmi_free(expected[i]);
    }
    print_message("%s: %lld non-zeros in %.0f us\n", matrices[number / 2], (long long)host.nnz,
                  view.made_seconds * 1e6);
  }
}

#define SAMPLED \
  { WLM_SAMPLE_FASTRAND, WLM_NORM_KEPT, 16 }

/* The problems; each is a test of its own, because all its candidates are compiled. */
static const struct problem {
  int64_t n;
  wlm_operation operation;
  wlm_message message;
  wlm_reduce reduce;
  int transpose, want_argmax;
  wlm_index argmax_type;
  wlm_sampling sampling;
} problems[] = {
    {.n = 32, .operation = WLM_SDDMM},
    {.n = 100, .operation = WLM_SDDMM},
    {.n = 128, .operation = WLM_SDDMM},
    {.n = 600, .operation = WLM_SDDMM},
    {.n = 32, .operation = WLM_SDDMM, .message = WLM_RDIV, .reduce = WLM_MEAN},
    {.n = 32, .transpose = 1},
    {.n = 32, .transpose = 1, .reduce = WLM_MAX, .want_argmax = 1}, /* argmax indices are positions in A */
    {.n = 32, .reduce = WLM_MAX, .want_argmax = 1, .argmax_type = WLM_I64},
    {.n = 48, .transpose = 1, .sampling = SAMPLED},
    {.n = 48,
     .transpose = 1,
     .sampling = {WLM_SAMPLE_FASTRAND, WLM_NORM_NONE, 16},
     .reduce = WLM_MAX,
     .want_argmax = 1},
    {.n = 48, .operation = WLM_SDDMM, .sampling = SAMPLED},
};

static void every_candidate(void **state) {
  const struct problem *p = *state;
  test_needs_nvrtc();
  MAKE(fixture, f, "twin:youtube,scale=0.02", WLM_I32);
  wlm_problem problem = PROBLEM(.n = p->n, .operation = p->operation, .message = p->message, .reduce = p->reduce,
                                .transpose = p->transpose, .want_argmax = p->want_argmax, .argmax_type = p->argmax_type,
                                .sampling = p->sampling);
  check_candidates(&f, &problem);
}

static wlm_problem sampled(int deterministic) {
  return (wlm_problem)PROBLEM(.n = 48, .transpose = 1, .sampling = (wlm_sampling)SAMPLED,
                              .policy.deterministic = deterministic);
}

/* wlm_spmm with different seeds: it scatters, or, if deterministic, builds A^T on the stream. */
TEST(one_call_with_each_seed) {
  test_needs_nvrtc();
  MAKE(fixture, f, "twin:youtube,scale=0.02", WLM_I32);
  for (int number = 0; number < 6; number++) {
    const wlm_problem problem = sampled(number % 2);
    wlm_execute_args call = EXECUTE_ARGS(.seed = (uint64_t)number / 2);
    HOLD(wlmi_operands, operands, wlmi_operands_create(f.context, f.upload.matrix, &problem, &call, 3, &operands));
    OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 3, &verifier));
    assert_status(WLM_OK, wlmi_operands_poison(&operands));
    assert_status(WLM_OK, wlm_spmm(f.context, wlmi_matrix_csr(f.upload.matrix), &problem, &operands.call));
    assert_status(WLM_OK, f.device->ops->synchronize(f.device, NULL));
    GET(double, error, wlmi_verify_result(verifier, &error));
  }
}

/* 0 and -0 are equal, so the first edge of a row wins, even if the GPU's max instruction distinguishes them. */
TEST(zero_equals_minus_zero) {
  test_needs_nvrtc();
  fixture f, zeros;
  fixture_make(&f, "twin:youtube,scale=0.02", WLM_I32);
  zeros = f;
  zeros.csr.values = wlmi_alloc((size_t)f.csr.nnz * sizeof *f.csr.values);
  assert_non_null(zeros.csr.values);
  for (int reduce = WLM_MAX; reduce <= WLM_MIN; reduce++) {
    wlm_problem problem = PROBLEM(.n = 32, .message = WLM_COPY_A, .reduce = (wlm_reduce)reduce, .want_argmax = 1);
    for (int64_t p = 0; p < f.csr.nnz; p++) zeros.csr.values[p] = p % 3 ? 0.0f : -0.0f;
    assert_status(WLM_OK, wlmi_upload_create_values(f.context, &f.upload, &zeros.csr, WLM_F32, &zeros.upload));
    check_candidates(&zeros, &problem);
    wlmi_upload_release(&zeros.upload);
  }
  wlmi_free(zeros.csr.values);
  fixture_release(&f);
}

/* The gradients of max and min by their argmax indices. */
TEST(gradients_by_argmax) {
  MAKE(fixture, f, "uniform:rows=10,d=1", WLM_I32);
  for (int number = 0; number < backward_problem_count(); number++) {
    const wlmi_spec spec = backward_problem(number);
    const kernel_check check = {f.device, &spec, 3, NULL, NULL, (uint64_t)number + 1};
    if (backward_check(&check, wlmi_context_generator(f.context)) != WLM_OK)
      fail_msg("problem %d: %s", number, wlm_error_detail());
  }
}

/* These gradients use atomic adds, so a deterministic plan refuses them. */
TEST(deterministic_gradients_are_refused) {
  MAKE(fixture, f, "uniform:rows=10,d=1", WLM_I32);
  wlm_problem problem = PROBLEM(.n = 8, .reduce = WLM_MIN, .want_argmax = 1, .policy.deterministic = 1);
  assert_status(WLM_ERR_UNSUPPORTED,
                test_argmax_gradient(f.context, f.upload.matrix, &problem, &f, NULL, NULL, &f, NULL));
  assert_non_null(strstr(wlm_error_detail(), "deterministic"));
}

#define EVERY(i) TEST_WITH(every_candidate_##i, every_candidate, (void *)(uintptr_t)&problems[i])
_Static_assert(sizeof problems / sizeof *problems == 11, "each problem has a row here");
EVERY(0)
EVERY(1)
EVERY(2)
EVERY(3)
EVERY(4)
EVERY(5)
EVERY(6)
EVERY(7)
EVERY(8)
EVERY(9)
EVERY(10)

GROUP(NULL, test_gpu_close)

int main(int argc, char **argv) { return test_run_shard(test_shard_of(argc, argv)); }
