/* Compiles the emitted host kernels of the covering set with the system's compiler and runs them against float64,
 * each with one and five OpenMP threads: results must be right and have the same bits each time. The first entries of
 * each parameter value and every fourth of the others are compiled with the flags of the library, the rest with -O1.
 * WARPLOOM_FULL: all with the flags of the library, and with two threads, too. */
#include <omp.h>

#include "runtime/devices.h"
#include "runtime/host/compiler.h"
#include "runtime/host/threads.h"
#include "support/covering_check.h"
#include "support/test.h"

enum { UNHURRIED = 4 };

static const int threads[] = {1, 5, 2};

static void next_threads(void *user, int run) {
  (void)user;
  omp_set_num_threads(threads[run]);
}

static wlm_status compile_quickly(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  static const char *const flags[] = {"-std=gnu11", "-O1", "-march=native", "-fopenmp", "-fPIC", "-shared", "-w", NULL};
  (void)device;
  return wlmi_host_compile_with(flags, program->source, image, size);
}

/* A device, and its operations with either compiler. */
typedef struct compilers {
  wlmi_device *device;
  const wlmi_device_ops *usual;
  wlmi_device_ops quick;
} compilers;

static void choose_compiler(void *user, int64_t index, const covering_entry *entry) {
  compilers *c = user;
  const int hurries = !covering_full() && !entry->first && index % UNHURRIED != 0;
  c->device->ops = hurries ? &c->quick : c->usual;
}

static covering_part part;

TEST(test_emitted_kernels) {
  compilers c;
  assert_status(WLM_OK, wlmi_host_device_open(&c.device));
  c.usual = c.device->ops;
  c.quick = *c.usual;
  c.quick.compile = compile_quickly;
  wlmi_host_share_from(0); /* several threads even for small products */
  covering_check_all(&(covering_check){c.device, covering_full() ? 3 : 2, choose_compiler, next_threads, &c, part});
  c.usual->close(c.device);
}

int main(int argc, char **argv) {
  part = covering_part_of(argc, argv);
  return test_run();
}
