/* Compiles and runs an emitted program on a device and compares it with the float64 reference, over many shapes. Works
 * on every device: the host, the simt shim, a GPU. */
#pragma once

#include "generator/generator.h"
#include "runtime/dispatch/device.h"

/* Runs the program for all shapes, with different alignments, leading dimensions, alpha and beta, and once for N = 0.
 * Checks that
 *   - results agree with the reference, although B holds NaN and Inf in rows that no edge uses and in the padding
 *   - edges behind the last row, as wlm_csr_from_coo leaves them, take no part where op(A) is walked
 *   - C is not read if beta = 0 (it then begins as NaN), and nothing outside of rows x n is written
 *   - workspace and prepared memory, which begin as NaN, suffice with exactly the stated sizes
 *   - prepare reads no values of A, which are set after it
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
