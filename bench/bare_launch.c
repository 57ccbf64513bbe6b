/* While it records, the device's table of functions is replaced by a copy with another `launch`. */
#include "bench/bare_launch.h"

#include "core/base/memory.h"
#include "runtime/cuda/device.h"

static wlmi_bare_launches *recording;
static const wlmi_device_ops *usual;

static wlm_status record(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                         void *stream) {
  WLM_CHECK(wlmi_grow((void **)&recording->list, recording->count, &recording->capacity, sizeof *recording->list,
                      "launches"));
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

wlm_status wlmi_bare_repeat(wlmi_device *device, wlmi_bare_launches *launches, int64_t first, int64_t end,
                            void *stream) {
  const int on_gpu = device->info.limits.target == WLM_TARGET_CUDA;
  for (int64_t i = first; i < end; i++) {
    const wlmi_bare_launch *bare = &launches->list[i];
    WLM_CHECK((on_gpu ? wlmi_cuda_launch_here : device->ops->launch)(device, &bare->launch, &bare->args, stream));
  }
  return WLM_OK;
}
