/* What training needs on a GPU: A^T made there has the bits of the host's, and every candidate for products with it and
 * for gradients is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/memory.h"
#include "matrix/transpose.h"
#include "matrix/twin.h"
#include "support/asserts.h"
#include "support/gpu.h"
#include "support/require.h"
#include "tuner/upload.h"
#include "tuner/verify.h"

typedef struct fixture {
  wlm_context *context;
  wlm_device *device; /* the context's */
  wlm_csr_host csr;
  wlm_upload upload;
} fixture;

static void fixture_make(const char *matrix, wlm_index rowptr_type, fixture *f) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  *f = (fixture){0};
  test_gpu();
  test_needs_nvrtc();
  options.device = "cuda";
  options.database = options.system_database = options.kernel_cache = "";
  assert_status(WLM_OK, wlm_context_create(&options, &f->context));
  f->device = wlm_context_device(f->context);
  assert_status(WLM_OK, wlm_twin_make(matrix, &f->csr));
  assert_status(WLM_OK, wlm_upload_create(f->context, &f->csr, rowptr_type, &f->upload));
}

static void fixture_release(fixture *f) {
  wlm_upload_release(&f->upload);
  wlm_csr_host_release(&f->csr);
  wlm_context_destroy(f->context);
}

static void *narrowed(const wlm_csr_host *a, wlm_index type) {
  int32_t *rowptr = wlm_alloc((size_t)(a->rows + 1) * sizeof *rowptr);
  if (type == WLM_I64) {
    wlm_free(rowptr);
    return NULL;
  }
  for (int64_t row = 0; row <= a->rows; row++) rowptr[row] = (int32_t)a->rowptr[row];
  return rowptr;
}

static void transpose_has_the_hosts_bits(void **state) {
  (void)state;
  static const char *const matrices[] = {"twin:youtube,scale=0.2", "twin:web-google,scale=0.05",
                                         "uniform:rows=300,d=0"};
  for (int number = 0; number < 6; number++) {
    const wlm_index type = (wlm_index)(number % 2);
    wlm_problem problem = WLM_PROBLEM_INIT;
    wlm_matrix_view view;
    fixture f;
    fixture_make(matrices[number / 2], type, &f);
    void *narrow = narrowed(&f.csr, type);
    wlm_csr host = *wlm_matrix_csr(f.upload.matrix);
    host.rowptr = narrow ? narrow : f.csr.rowptr;
    host.colind = f.csr.colind;
    problem.transpose = 1;
    assert_status(WLM_OK, wlm_matrix_see(f.upload.matrix, &problem, &view));
    const size_t offset = wlm_index_size(type);
    const size_t sizes[] = {(size_t)(host.cols + 1) * offset, (size_t)host.nnz * 4, (size_t)host.nnz * offset};
    const void *there[] = {view.csr.rowptr, view.csr.colind, view.order};
    void *expected[3], *got[3];
    for (int i = 0; i < 3; i++) {
      expected[i] = wlm_alloc(sizes[i]);
      got[i] = wlm_alloc(sizes[i]);
      if (sizes[i]) assert_status(WLM_OK, f.device->ops->copy_out(f.device, got[i], there[i], sizes[i]));
    }
    assert_status(WLM_OK, wlm_transpose_pattern(&host, expected[0], expected[1], expected[2]));
    for (int i = 0; i < 3; i++) {
      assert_memory_equal(got[i], expected[i], sizes[i]);
      wlm_free(got[i]);
      wlm_free(expected[i]);
    }
    print_message("%s: %lld non-zeros in %.0f us\n", matrices[number / 2], (long long)host.nnz,
                  view.made_seconds * 1e6);
    wlm_free(narrow);
    fixture_release(&f);
  }
}

static void check_candidates(fixture *f, const wlm_problem *problem) {
  wlm_operands operands;
  wlm_verifier *verifier;
  wlm_names names;
  assert_status(WLM_OK, wlm_operands_create(f->context, f->upload.matrix, problem, 5, &operands));
  assert_status(WLM_OK, wlm_verifier_create(&operands, 5, &verifier));
  assert_status(WLM_OK, wlm_generator_candidates(wlm_context_generator(f->context), &operands.spec,
                                                 &f->device->info.limits, &names));
  assert_true(names.count > 1);
  for (int64_t i = 0; i < names.count; i++) {
    wlm_plan *plan;
    double error;
    assert_status(WLM_OK, wlm_plan_create_variant(f->context, f->upload.matrix, problem, names.names[i], &plan));
    assert_status(WLM_OK, wlm_operands_bind(&operands, plan));
    if (wlm_verify(verifier, plan, &error) != WLM_OK) fail_msg("%s: %s", names.names[i], wlm_error_detail());
    wlm_plan_destroy(plan);
  }
  print_message("n = %lld: %lld candidates\n", (long long)problem->n, (long long)names.count);
  wlm_names_release(&names);
  wlm_verifier_destroy(verifier);
  wlm_operands_release(&operands);
}

static void every_candidate(void **state) {
  (void)state;
  static const int64_t widths[] = {32, 100, 128, 600};
  fixture f;
  fixture_make("twin:youtube,scale=0.02", WLM_I32, &f);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    wlm_problem problem = WLM_PROBLEM_INIT;
    problem.n = widths[i];
    problem.operation = WLM_SDDMM;
    check_candidates(&f, &problem);
    problem.message = WLM_RDIV;
    problem.reduce = WLM_MEAN;
    if (!i) check_candidates(&f, &problem);
  }
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = 32;
  problem.transpose = 1;
  check_candidates(&f, &problem);
  fixture_release(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transpose_has_the_hosts_bits),
      cmocka_unit_test(every_candidate),
  };
  return cmocka_run_group_tests(tests, NULL, test_gpu_close);
}
