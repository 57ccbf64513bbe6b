/* While it records, the device's table of functions is replaced by a copy with another `launch`. */
#include "bench/bare_launch.h"

#include "core/base/memory.h"
#include "runtime/cuda/driver.h"

static wlmi_bare_launches *recording;
static const wlmi_device_ops *usual;

static wlm_status record(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                         void *stream) {
  wlm_status status =
      wlmi_grow((void **)&recording->list, recording->count, &recording->capacity, sizeof *recording->list, "launches");
  if (status != WLM_OK) return status;
  recording->list[recording->count++] = (wlmi_bare_launch){*launch, *args};
  return usual->launch(device, launch, args, stream);
}

wlm_status wlmi_bare_record(wlmi_device *device, wlm_status (*call)(void *user), void *user,
                            wlmi_bare_launches *launches) {
  recording = launches;
  usual = device->ops;
  wlmi_device_ops ops = *usual;
  ops.launch = record;
  device->ops = &ops;
  wlm_status status = call(user);
  device->ops = usual;
  return status;
}

void wlmi_bare_release(wlmi_bare_launches *launches) {
  wlmi_free(launches->list);
  *launches = (wlmi_bare_launches){0};
}

/* As wlmi_cuda_launch configures it, but without making the context current. */
static wlm_status launch_cuda(const wlmi_device *device, wlmi_bare_launch *bare, void *stream) {
  const wlmi_launch *launch = &bare->launch;
  void *parameters[] = {&bare->args};
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
      .numAttrs = launch->dependent && device->info.limits.arch >= 90 && wlmi_cuda.version >= 12030,
  };
  return WLM_CUDA(cuLaunchKernelEx, &config, launch->kernel, parameters, NULL);
}

wlm_status wlmi_bare_repeat(wlmi_device *device, wlmi_bare_launches *launches, int64_t first, int64_t end,
                            void *stream) {
  const int on_gpu = device->info.limits.target == WLM_TARGET_CUDA;
  wlm_status status = WLM_OK;
  for (int64_t i = first; i < end && status == WLM_OK; i++) {
    wlmi_bare_launch *bare = &launches->list[i];
    status =
        on_gpu ? launch_cuda(device, bare, stream) : device->ops->launch(device, &bare->launch, &bare->args, stream);
  }
  return status;
}
