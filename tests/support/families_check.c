#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/problem/spec_key.h"
#include "support/kernel_check.h"
#include "support/own.h"
#include "support/seed.h"

static void check_variant(const kernel_check *check, wlmi_generator *generator, const char *variant, int one_in) {
  const wlm_problem *p = &check->spec->problem;
  char key[WLMI_SPEC_KEY], text[WLMI_SPEC_KEY + 2 * WLMI_VARIANT_NAME];
  wlmi_spec_key(check->spec, key);
  snprintf(text, sizeof text, "%s %s n=%lld transpose=%d %s", check->device->info.kind, variant, (long long)p->n,
           p->transpose, key);
  if (!test_is_drawn(text, one_in)) return;
  HOLD(wlmi_program, program,
       wlmi_generator_emit(generator, variant, check->spec, &check->device->info.limits, &program));
  if (kernel_check_program(check, &program) != WLM_OK)
    fail_msg("n = %lld, %lld heads, transpose %d: %s", (long long)p->n, (long long)p->heads, p->transpose,
             wlm_error_detail());
}

int kernel_check_families(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, int runs, int one_in) {
  const kernel_check check = {.device = device, .spec = spec, .runs = runs, .seed = 5};
  int families = 0;
  OWN(wlmi_candidates, names, wlmi_generator_describe(generator, spec, &device->info.limits, &names));
  for (int64_t first = 0, end; first < names->count; first = end, families++) {
    const size_t size = strcspn(names->candidates[first].variant, "/") + 1;
    for (end = first;
         end < names->count && !strncmp(names->candidates[end].variant, names->candidates[first].variant, size);)
      end++;
    check_variant(&check, generator, names->candidates[first + spec->problem.n % (end - first)].variant, one_in);
  }
  return families;
}
