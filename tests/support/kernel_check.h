/* Compiles and runs an emitted program of any operation on a device and compares it with the float64 reference, over
 * many shapes. Works on every device: the host, the simt shim, a GPU. */
#pragma once

#include "generator/generator.h"
#include "runtime/dispatch/device.h"

/* Runs the program on the operands of support/kernel_operands.h. Checks that
 *   - every output agrees with the reference, and positions exactly; edges are in the order of A
 *   - an output is not read unless the call says so, and nothing but its elements is written
 *   - workspace and prepared memory, which begin as NaN, suffice with exactly the stated sizes
 *   - prepare reads no values of A, which are set after it
 *   - gradients by argmax are the same together and alone
 *   - all `runs` on the same operands give the same bits, if the program is deterministic.
 * before_run is called before each run, so that a caller can change the device's order or number of threads. On
 * WLM_ERR_MISMATCH the detail says what differs; other errors are returned unchanged. */
typedef struct kernel_check {
  wlmi_device *device;
  const wlmi_spec *spec;
  int runs;
  void (*before_run)(void *user, int run);
  void *user;
  uint64_t seed;
} kernel_check;

/* Compiles and loads the program, checks it and unloads it. */
wlm_status kernel_check_program(const kernel_check *check, const wlmi_program *program);

/* Checks one variant of each family that serves the problem, `runs` times; which variant depends on the problem. The
 * seed draws one in `one_in` of them (support/seed.h). Returns the number of families. Fails the running test if a
 * result is wrong. */
int kernel_check_families(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, int runs, int one_in);
