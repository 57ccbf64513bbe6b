#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <string.h>

#include "support/asserts.h"
#include "support/kernel_check.h"

static void check_variant(const kernel_check *check, wlmi_generator *generator, const char *variant) {
  const wlm_problem *p = &check->spec->problem;
  wlmi_program program;
  assert_status(WLM_OK, wlmi_generator_emit(generator, variant, check->spec, &check->device->info.limits, &program));
  if (kernel_check_program(check, &program) != WLM_OK)
    fail_msg("n = %lld, %lld heads, transpose %d: %s", (long long)p->n, (long long)p->heads, p->transpose,
             wlm_error_detail());
  wlmi_program_release(&program);
}

int kernel_check_families(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, int runs) {
  const kernel_check check = {.device = device, .spec = spec, .runs = runs, .seed = 5};
  const wlmi_candidate_list *names;
  int families = 0;
  assert_status(WLM_OK, wlmi_generator_describe(generator, spec, &device->info.limits, &names));
  for (int64_t first = 0, end; first < names->count; first = end, families++) {
    const size_t size = strcspn(names->candidates[first].variant, "/") + 1;
    for (end = first;
         end < names->count && !strncmp(names->candidates[end].variant, names->candidates[first].variant, size);)
      end++;
    check_variant(&check, generator, names->candidates[first + spec->problem.n % (end - first)].variant);
  }
  wlmi_candidates_drop(names);
  return families;
}
