#include <stdint.h>

#include "core/synth/twin.h"
#include "support/defaults.h"
#include "support/gpu_fixture.h"
#include "support/own.h"
#include "support/verified.h"

void fixture_make(fixture *f, const char *matrix, wlm_index rowptr_type) {
  *f = (fixture){0};
  test_gpu();
  wlm_context_options options = BARE_OPTIONS(.device = "cuda");
  assert_status(WLM_OK, wlm_context_create(&options, &f->context));
  assert_string_equal(wlm_context_device_kind(f->context), "cuda");
  f->device = wlmi_context_device(f->context);
  assert_status(WLM_OK, wlmi_twin_make(matrix, &f->csr));
  assert_status(WLM_OK, wlmi_upload_create(f->context, &f->csr, rowptr_type, &f->upload));
}

void fixture_release(fixture *f) {
  wlmi_upload_release(&f->upload);
  wlmi_csr_host_release(&f->csr);
  wlm_context_destroy(f->context);
}

void check_candidates(fixture *f, const wlm_problem *problem) {
  HOLD(wlmi_operands, operands, wlmi_operands_create(f->context, f->upload.matrix, problem, NULL, 5, &operands));
  OWN(wlmi_verifier, verifier, wlmi_verifier_create(&operands, 5, &verifier));
  OWN(wlmi_candidates, names,
      wlmi_generator_describe(wlmi_context_generator(f->context), &operands.spec, &f->device->info.limits, &names));
  assert_true(names->count > 1);
  for (int64_t i = 0; i < names->count; i++) {
    double error;
    const char *variant = names->candidates[i].variant;
    OWN(wlm_plan, plan, wlm_plan_create_variant(f->context, f->upload.matrix, problem, variant, &plan));
    assert_string_equal(wlm_plan_variant(plan), variant);
    if (verify_plan(&operands, verifier, plan, &error) != WLM_OK) fail_msg("%s: %s", variant, wlm_error_detail());
  }
  print_message("n = %lld: %lld candidates\n", (long long)problem->n, (long long)names->count);
}
