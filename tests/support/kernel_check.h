/* Compiles and runs an emitted program on a device and compares it with the float64 reference, over many shapes. Works
 * on every device: the host, the simt shim, a GPU. */
#ifndef WLM_TESTS_KERNEL_CHECK_H
#define WLM_TESTS_KERNEL_CHECK_H

#include "generator/generator.h"
#include "runtime/dispatch/device.h"

/* For all shapes, with different leading dimensions, alpha and beta, and once for N = 0:
 *   - results agree with the reference, in the problem's types, of B and C as aligned and unaligned as the types allow
 *   - B holds NaN and Inf where no non-zero points and between n and ldb
 *   - C holds NaN where beta = 0; nothing outside rows x n is touched
 *   - the workspace begins as NaN, and so does what is to be prepared, of exactly the stated sizes
 *   - what is prepared stands for the pattern alone: A's values come after it;
 * all of it `runs` times on the same operands: the same bits each time where the program says that it is
 * deterministic. before_run is called before each execute, so that a caller may change the device's order or number
 * of threads. WLM_ERR_MISMATCH says what differs; other statuses are passed on. */
typedef struct kernel_check {
  wlmi_device *device;
  const wlmi_spec *spec;
  int runs;
  void (*before_run)(void *user, int run);
  void *user;
  uint64_t seed;
} kernel_check;

/* Compiles the program, checks it and unloads it. */
wlm_status kernel_check_program(const kernel_check *check, const wlmi_program *program);

/* Checks one variant of each family that serves the problem, not always the same, `runs` times; gives how many families
 * these are. Fails the running test where one is wrong. */
int kernel_check_families(wlmi_device *device, wlmi_generator *generator, const wlmi_spec *spec, int runs);

#endif
