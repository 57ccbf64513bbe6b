/* Compiles, loads and launches code on the GPU. Everything that takes time or memory happens when code is loaded, so a
 * launch is one driver call and can be captured in a graph. */
#include <string.h>

#include "runtime/cuda/device.h"
#include "runtime/cuda/nvrtc.h"

/* A GPU that is newer than NVRTC gets PTX, which the kernel cache stores like machine code. */
wlm_status wlmi_cuda_compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  const int arch = device->info.limits.arch, is_ptx = arch != ((const wlmi_cuda_device *)device)->arch;
  WLM_CHECK(wlmi_cuda_check_process(device));
  return wlmi_nvrtc_compile(program->source, program->variant, arch, is_ptx, image, size, NULL);
}

/* Module from a cubin, or from PTX, which the driver compiles; its messages become the detail text. */
static wlm_status load_module(const char *variant, const void *image, CUmodule *module) {
  char log[2048] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  wlm_status status = WLM_CUDA(cuModuleLoadDataEx, module, image, 2, options, values);
  if (status == WLM_OK) return WLM_OK;
  if (log[0]) wlmi_fail_in(status, "%s", log);
  return wlmi_fail_in(status, "%s cannot be loaded", variant);
}

/* By default the driver reserves more shared memory than the blocks can use; L1 is only what remains. */
static wlm_status leave_room_for_l1(wlmi_device *device, CUfunction function, const wlmi_pass *pass) {
  int fixed, blocks, most;
  const int reserved = 1024; /* the driver's own use in each block */
  WLM_CHECK(WLM_CUDA(cuDeviceGetAttribute, &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
                     ((const wlmi_cuda_device *)device)->handle));
  WLM_CHECK(WLM_CUDA(cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  WLM_CHECK(WLM_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, pass->threads,
                     (size_t)pass->shared_bytes));
  const int64_t percent = (100 * blocks * (fixed + pass->shared_bytes + reserved) + most - 1) / most;
  return WLM_CUDA(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                  percent < 100 ? (int)percent : 100);
}

static wlm_status find_kernel(wlmi_device *device, CUmodule module, const wlmi_pass *pass, int main_pass,
                              void **kernel) {
  CUfunction function;
  WLM_CHECK(WLM_CUDA(cuModuleGetFunction, &function, module, pass->kernel));
  if (pass->shared_bytes) /* more than 48 KB must be requested */
    WLM_CHECK(WLM_CUDA(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       (int)pass->shared_bytes));
  if (main_pass) WLM_CHECK(leave_room_for_l1(device, function, pass));
  if (wlmi_cuda.cuFuncLoad) WLM_CHECK(WLM_CUDA(cuFuncLoad, function));
  *kernel = function;
  return WLM_OK;
}

wlm_status wlmi_cuda_load(wlmi_device *device, const wlmi_program *program, const void *image, size_t size,
                          void *kernels[WLMI_MAX_PASSES], wlmi_module **module) {
  (void)size; /* an image contains its size */
  CUmodule loaded = NULL;
  *module = NULL;
  WLM_CUDA_SCOPE(device);
  WLM_CHECK(load_module(program->variant, image, &loaded));
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *pass = &program->passes[i];
    const wlm_status status =
        find_kernel(device, loaded, pass, pass == wlmi_program_first_execute(program), &kernels[i]);
    if (status == WLM_OK) continue;
    wlmi_cuda.cuModuleUnload(loaded);
    return wlmi_fail_in(status, "%s: kernel '%s'", program->variant, pass->kernel);
  }
  *module = (wlmi_module *)loaded;
  return WLM_OK;
}

void wlmi_cuda_unload(wlmi_device *device, wlmi_module *module) {
  wlmi_cuda_scope scope;
  if (!module || wlmi_cuda_enter(device, &scope) != WLM_OK) return;
  wlmi_cuda.cuModuleUnload((CUmodule)module);
  wlmi_cuda_leave(&scope);
}

wlm_status wlmi_cuda_launch_here(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                 void *stream) {
  void *parameters[] = {(void *)args};
  CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};
  const CUlaunchConfig config = {
      .gridDimX = launch->grid[0],
      .gridDimY = launch->grid[1],
      .gridDimZ = launch->grid[2],
      .blockDimX = launch->threads,
      .blockDimY = 1,
      .blockDimZ = 1,
      .sharedMemBytes = launch->shared_bytes,
      .hStream = stream,
      .attrs = &overlap,
      .numAttrs =
          launch->dependent && device->info.limits.arch >= 90 && wlmi_cuda.version >= 12030, /* can be captured */
  };
  return WLM_CUDA(cuLaunchKernelEx, &config, launch->kernel, parameters, NULL);
}

wlm_status wlmi_cuda_launch(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                            void *stream) {
  WLM_CUDA_SCOPE(device);
  const wlm_status status = wlmi_cuda_launch_here(device, launch, args, stream);
  if (status == WLM_OK) return status;
  return wlmi_fail_in(status, "grid %u x %u x %u, %u threads, %u bytes of shared memory", launch->grid[0],
                      launch->grid[1], launch->grid[2], launch->threads, launch->shared_bytes);
}

wlm_status wlmi_cuda_kernel_facts(const wlmi_device *device, const wlmi_launch *launch, wlmi_kernel_facts *facts) {
  int local, fixed;
  *facts = (wlmi_kernel_facts){0};
  WLM_CUDA_SCOPE(device);
  WLM_CHECK(WLM_CUDA(cuFuncGetAttribute, &facts->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, launch->kernel));
  WLM_CHECK(WLM_CUDA(cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, launch->kernel));
  WLM_CHECK(WLM_CUDA(cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch->kernel));
  WLM_CHECK(WLM_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor, &facts->blocks, launch->kernel, (int)launch->threads,
                     launch->shared_bytes));
  facts->local_bytes = local;
  facts->shared_bytes = fixed + (int64_t)launch->shared_bytes;
  return WLM_OK;
}
