#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "matrix/twin.h"
#include "support/gpu_fixture.h"
#include "tuner/verify.h"

void fixture_make(const char *matrix, wlm_index rowptr_type, fixture *f) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  *f = (fixture){0};
  test_gpu();
  options.device = "cuda";
  options.database = options.system_database = options.kernel_cache = "";
  assert_status(WLM_OK, wlm_context_create(&options, &f->context));
  assert_string_equal(wlm_context_device_kind(f->context), "cuda");
  f->device = wlm_context_device(f->context);
  assert_status(WLM_OK, wlm_twin_make(matrix, &f->csr));
  assert_status(WLM_OK, wlm_upload_create(f->context, &f->csr, rowptr_type, &f->upload));
}

void fixture_release(fixture *f) {
  wlm_upload_release(&f->upload);
  wlm_csr_host_release(&f->csr);
  wlm_context_destroy(f->context);
}

void check_candidates(fixture *f, const wlm_problem *problem) {
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
    assert_string_equal(wlm_plan_variant(plan), names.names[i]);
    assert_status(WLM_OK, wlm_operands_bind(&operands, plan));
    if (wlm_verify(verifier, plan, &error) != WLM_OK) fail_msg("%s: %s", names.names[i], wlm_error_detail());
    wlm_plan_destroy(plan);
  }
  print_message("n = %lld: %lld candidates\n", (long long)problem->n, (long long)names.count);
  wlm_names_release(&names);
  wlm_verifier_destroy(verifier);
  wlm_operands_release(&operands);
}
