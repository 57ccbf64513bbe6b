#include "simt/shim/simt_device.h"

#include <string.h>

#include "core/base/memory.h"
#include "exported/tables.h"
#include "generator/generator.h"
#include "runtime/devices.h"
#include "runtime/host/compiler.h"
#include "runtime/host/module.h"
#include "simt/shim/launch.h"

typedef struct simt_device {
  wlmi_device device;
  wlmi_device *host; /* provides the memory of this device */
  uint64_t seed;
  int hurries;
} simt_device;

typedef struct kernel {
  void (*function)(struct wlm_args args);
  simt_args takes;
  void (*shared_range)(unsigned int **begin, unsigned int **end);
} kernel;

typedef struct simt_module {
  wlmi_module *library;
  kernel kernels[WLMI_MAX_PASSES];
} simt_module;

static void simt_close(wlmi_device *device) {
  simt_device *simt = (simt_device *)device;
  simt->host->ops->close(simt->host);
  wlmi_free(simt);
}

/* These tests spend most of their time in the compiler, so it inlines nothing and calls functions for ASan's checks.
 * The process has the sanitizers' libraries already; linking them again takes a sixth of a compilation. */
static wlm_status simt_compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  const int hurries = ((const simt_device *)device)->hurries;
  const char *const flags[] = {"-std=gnu11",
                               "-Og",
                               "-fno-inline",
                               "-g1",
                               "-fPIC",
                               "-shared",
                               "-nodefaultlibs",
                               "-w",
                               "-fsanitize=address,undefined",
                               "--param",
                               "asan-instrumentation-with-call-threshold=0",
                               "-fno-sanitize-recover=all",
                               hurries ? "-fno-sanitize=pointer-overflow" : "-fsanitize=pointer-overflow",
                               "-fsanitize-sections=simt_shared", /* else ASan ignores named sections */
                               "-include",
                               WLM_SOURCE_DIR "/tests/simt/shim/simt.h",
                               NULL};
  return wlmi_host_compile_with(flags, program->source, image, size);
}

/* The structs that the source itself declares decide; of a batch the program says it. */
static simt_args takes(const wlmi_program *program) {
  const char *source = program->source ? program->source : "";
  return program->is_batched || program->rows_together ? SIMT_BATCH_ARGS
         : strstr(source, "struct wlm_attention ")     ? SIMT_ATTENTION_ARGS
         : strstr(source, "struct wlm_operands ")      ? SIMT_MESSAGE_ARGS
                                                       : SIMT_ARGS;
}

static wlm_status load_kernels(simt_module *module, const wlmi_program *program, void *kernels[WLMI_MAX_PASSES]) {
  void *range = wlmi_host_module_symbol(module->library, "simt_shared_range");
  for (int i = 0; i < program->pass_count; i++) {
    void *function = wlmi_host_module_symbol(module->library, program->passes[i].kernel);
    if (!function)
      return wlmi_fail(WLM_ERR_TEMPLATE, "%s: the template defines no kernel '%s'", program->variant,
                       program->passes[i].kernel);
    *(void **)&module->kernels[i].function = function;
    *(void **)&module->kernels[i].shared_range = range;
    module->kernels[i].takes = takes(program);
    kernels[i] = &module->kernels[i];
  }
  return WLM_OK;
}

/* The spec that a built-in kernel's PTX was made for; returns 0 if the image is another one. */
static int find_builtin_spec(const wlmi_limits *limits, const void *image, wlmi_spec *spec) {
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    wlm_problem problem = WLM_PROBLEM_INIT;
    wlm_csr csr = WLM_CSR_INIT;
    problem.n = 64;
    csr.rowptr_type = (wlm_index)type;
    csr.values = &csr; /* any: there are values */
    if (wlmi_spec_make(&problem, &csr, spec) != WLM_OK) return 0;
    const wlmi_exported_kernel *kernel = wlmi_exported_builtin(&wlmi_exported_tables, limits, spec);
    if (kernel && wlmi_exported_tables.images[kernel->image].data == image) return 1;
  }
  return 0;
}

/* Compiles what a built-in kernel's PTX was made of; any other image is used as it is, with *made = NULL. */
static wlm_status remake_builtin(wlmi_device *device, const wlmi_program *linked, const void *image, void **made,
                                 size_t *size) {
  wlmi_spec spec;
  wlmi_generator *generator;
  wlmi_program program = {0};
  *made = NULL;
  if (!find_builtin_spec(&device->info.limits, image, &spec)) return WLM_OK;
  WLM_CHECK(wlmi_generator_create(NULL, &generator));
  wlm_status status = wlmi_generator_emit(generator, linked->variant, &spec, &device->info.limits, &program);
  if (status == WLM_OK) status = simt_compile(device, &program, made, size);
  wlmi_program_release(&program);
  wlmi_generator_destroy(generator);
  return status;
}

static void simt_unload(wlmi_device *device, wlmi_module *opaque) {
  (void)device;
  simt_module *module = (simt_module *)opaque;
  if (module) wlmi_host_module_close(module->library);
  wlmi_free(module);
}

static wlm_status simt_load(wlmi_device *device, const wlmi_program *program, const void *image, size_t size,
                            void *kernels[WLMI_MAX_PASSES], wlmi_module **out) {
  void *made;
  simt_module *module = wlmi_alloc_zero(1, sizeof *module);
  *out = (wlmi_module *)module;
  if (!module) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "module");
  wlm_status status = remake_builtin(device, program, image, &made, &size);
  if (status == WLM_OK) status = wlmi_host_module_open(made ? made : image, size, &module->library);
  wlmi_free(made);
  if (status == WLM_OK) status = load_kernels(module, program, kernels);
  if (status == WLM_OK) return WLM_OK;
  simt_unload(device, *out);
  *out = NULL;
  return status;
}

static wlm_status simt_launch_pass(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                   void *stream) {
  (void)stream;
  const kernel *k = launch->kernel;
  simt_run(&(simt_launch){k->function,
                          k->shared_range,
                          {launch->grid[0], launch->grid[1], launch->grid[2]},
                          launch->threads,
                          launch->shared_bytes,
                          k->takes,
                          ((const simt_device *)device)->seed},
           args);
  return WLM_OK;
}

wlm_status simt_device_open(wlmi_device **out) {
  static wlmi_device_ops ops;
  *out = NULL;
  simt_device *simt = wlmi_alloc_zero(1, sizeof *simt);
  if (!simt) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "simt device");
  wlm_status status = wlmi_host_device_open(&simt->host);
  if (status != WLM_OK) {
    wlmi_free(simt);
    return status;
  }
  ops = *simt->host->ops;
  ops.close = simt_close;
  ops.compile = simt_compile;
  ops.load = simt_load;
  ops.unload = simt_unload;
  ops.launch = simt_launch_pass;
  simt->device.ops = &ops;
  simt->device.info = (wlmi_device_info){
      .kind = "simt",
      .name = "CUDA threads as fibers",
      .limits = {.target = WLMI_TARGET_CUDA, .arch = 90, .threads_per_block = 1024, .shared_bytes = 232448}};
  *out = &simt->device;
  return WLM_OK;
}

void simt_device_seed(wlmi_device *device, uint64_t seed) { ((simt_device *)device)->seed = seed; }
void simt_device_hurry(wlmi_device *device, int hurries) { ((simt_device *)device)->hurries = hurries; }
