/* Compares the CUDA kernels of the gradients by argmax, run as fibers under ASan and UBSan, with the float64 reference.
 */
#include "simt/shim/simt_device.h"
#include "support/backward_check.h"
#include "support/test.h"

static void before_run(void *user, int run) { simt_device_seed(user, (uint64_t)run + 1); }

TEST(every_problem) {
  OWN(wlmi_device, device, simt_device_open(&device));
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  for (int number = 0; number < backward_problem_count(); number++) {
    const wlmi_spec spec = backward_problem(number);
    const kernel_check check = {device, &spec, 3, before_run, device, (uint64_t)number + 1};
    wlm_status status = backward_check(&check, generator);
    if (status != WLM_OK) fail_msg("problem %d: %s", number, wlm_error_detail());
  }
}
