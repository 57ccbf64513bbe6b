/* Code on the GPU: compiling, loading, launching. All that may take time or memory happens when code is loaded, so
 * that a launch is one driver call and can be captured in a graph. */
#include <string.h>

#include "runtime/cuda_builtin.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_nvrtc.h"

wlm_status wlm_cuda_compile(wlm_device *device, const wlm_program *program, void **image, size_t *size) {
  return wlm_nvrtc_compile(program->source, program->variant, device->info.limits.arch, image, size, NULL);
}

/* Module from a cubin, or from PTX, which the driver compiles; its messages become the detail text. */
static wlm_status load_module(const char *variant, const void *image, CUmodule *module) {
  char log[2048] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  wlm_status status = WLM_CUDA(cuModuleLoadDataEx, module, image, 2, options, values);
  if (status == WLM_OK) return WLM_OK;
  if (log[0]) wlm_fail_in(status, "%s", log);
  return wlm_fail_in(status, "%s cannot be loaded", variant);
}

/* Left to itself, the driver sets more shared memory aside than blocks can use, and L1 is what remains. */
static wlm_status leave_room_for_l1(wlm_device *device, CUfunction function, const wlm_pass *pass) {
  int fixed, blocks, most;
  const int reserved = 1024; /* of each block, by the driver */
  wlm_status status;
  WLM_TRY(WLM_CUDA(cuDeviceGetAttribute, &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
                   ((const wlm_cuda_device *)device)->handle));
  WLM_TRY(WLM_CUDA(cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  WLM_TRY(WLM_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, pass->threads,
                   (size_t)pass->shared_bytes));
  const int64_t percent = (100 * blocks * (fixed + pass->shared_bytes + reserved) + most - 1) / most;
  status = WLM_CUDA(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                    percent < 100 ? (int)percent : 100);
done:
  return status;
}

static wlm_status find_kernel(wlm_device *device, CUmodule module, const wlm_pass *pass, int main_pass, void **kernel) {
  CUfunction function;
  wlm_status status;
  WLM_TRY(WLM_CUDA(cuModuleGetFunction, &function, module, pass->kernel));
  if (pass->shared_bytes) /* more than 48 KB are there for those who ask */
    WLM_TRY(WLM_CUDA(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     (int)pass->shared_bytes));
  if (main_pass) WLM_TRY(leave_room_for_l1(device, function, pass));
  if (wlm_cuda.cuFuncLoad) WLM_TRY(WLM_CUDA(cuFuncLoad, function));
  *kernel = function;
done:
  return status;
}

wlm_status wlm_cuda_load(wlm_device *device, const wlm_program *program, const void *image, size_t size,
                         void *kernels[WLM_MAX_PASSES], wlm_module **module) {
  (void)size; /* an image tells its own */
  wlm_cuda_scope scope;
  CUmodule loaded = NULL;
  *module = NULL;
  wlm_status status = wlm_cuda_enter(device, &scope);
  if (status != WLM_OK) return status;
  WLM_TRY(load_module(program->variant, image, &loaded));
  for (int i = 0; i < program->pass_count; i++) {
    const wlm_pass *pass = &program->passes[i];
    status = find_kernel(device, loaded, pass, pass == wlm_program_first_execute(program), &kernels[i]);
    if (status != WLM_OK) {
      wlm_fail_in(status, "%s: kernel '%s'", program->variant, program->passes[i].kernel);
      wlm_cuda.cuModuleUnload(loaded);
      goto done;
    }
  }
  *module = (wlm_module *)loaded;
done:
  wlm_cuda_leave(&scope);
  return status;
}

wlm_status wlm_cuda_load_builtin(wlm_device *device, const wlm_spec *spec, wlm_program *program,
                                 void *kernels[WLM_MAX_PASSES], wlm_module **module) {
  char key[WLM_SPEC_KEY];
  wlm_spec_key(spec, key);
  for (int i = 0; i < wlm_cuda_builtin_count; i++) {
    const struct wlm_cuda_builtin *builtin = &wlm_cuda_builtins[i];
    if (strcmp(builtin->key, key)) continue;
    *program = builtin->program;
    return wlm_cuda_load(device, program, builtin->ptx, strlen(builtin->ptx) + 1, kernels, module);
  }
  return wlm_fail(WLM_ERR_NO_COMPILER,
                  "without NVRTC only the %d kernel%s built into the library can run, and none is for %s; install "
                  "NVRTC (part of the CUDA Toolkit, pip package nvidia-cuda-nvrtc) or let WARPLOOM_NVRTC name it",
                  wlm_cuda_builtin_count, wlm_cuda_builtin_count == 1 ? "" : "s", key);
}

void wlm_cuda_unload(wlm_device *device, wlm_module *module) {
  wlm_cuda_scope scope;
  if (!module || wlm_cuda_enter(device, &scope) != WLM_OK) return;
  wlm_cuda.cuModuleUnload((CUmodule)module);
  wlm_cuda_leave(&scope);
}

wlm_status wlm_cuda_launch(const wlm_device *device, const wlm_launch *launch, const struct wlm_args *args,
                           void *stream) {
  wlm_cuda_scope scope;
  void *parameters[] = {(void *)args};
  wlm_status status = wlm_cuda_enter(device, &scope);
  if (status != WLM_OK) return status;
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
          launch->dependent && device->info.limits.arch >= 90 && wlm_cuda.version >= 12030, /* can be captured */
  };
  status = WLM_CUDA(cuLaunchKernelEx, &config, launch->kernel, parameters, NULL);
  if (status != WLM_OK)
    wlm_fail_in(status, "grid %u x %u x %u, %u threads, %u bytes of shared memory", launch->grid[0], launch->grid[1],
                launch->grid[2], launch->threads, launch->shared_bytes);
  wlm_cuda_leave(&scope);
  return status;
}

wlm_status wlm_cuda_kernel_facts(const wlm_device *device, const wlm_launch *launch, wlm_kernel_facts *facts) {
  wlm_cuda_scope scope;
  int local, fixed;
  *facts = (wlm_kernel_facts){0};
  wlm_status status = wlm_cuda_enter(device, &scope);
  if (status != WLM_OK) return status;
  WLM_TRY(WLM_CUDA(cuFuncGetAttribute, &facts->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, launch->kernel));
  WLM_TRY(WLM_CUDA(cuFuncGetAttribute, &local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, launch->kernel));
  WLM_TRY(WLM_CUDA(cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch->kernel));
  WLM_TRY(WLM_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor, &facts->blocks, launch->kernel, (int)launch->threads,
                   launch->shared_bytes));
  facts->local_bytes = local;
  facts->shared_bytes = fixed + (int64_t)launch->shared_bytes;
done:
  wlm_cuda_leave(&scope);
  return status;
}
