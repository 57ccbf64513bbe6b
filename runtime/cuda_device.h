/* What the files of the cuda device share. */
#ifndef WLM_RUNTIME_CUDA_DEVICE_H
#define WLM_RUNTIME_CUDA_DEVICE_H

#include "runtime/cuda_driver.h"
#include "runtime/dispatch/device.h"

typedef struct wlm_cuda_device {
  wlm_device base;
  CUdevice handle;
  CUcontext context; /* the primary one, which the CUDA runtime and PyTorch use as well */
} wlm_cuda_device;

/* Driver calls act on the thread's current context. Enter makes the device's context current, whatever thread and
 * whatever context was there; leave restores that. Between them no early return. */
typedef struct wlm_cuda_scope {
  int pushed;
} wlm_cuda_scope;
wlm_status wlm_cuda_enter(const wlm_device *device, wlm_cuda_scope *scope);
void wlm_cuda_leave(const wlm_cuda_scope *scope);

/* The device's functions, by file (runtime/dispatch/device.h says what they do). */
wlm_status wlm_cuda_compile(wlm_device *device, const wlm_program *program, void **image, size_t *size);
wlm_status wlm_cuda_load(wlm_device *device, const wlm_program *program, const void *image, size_t size,
                         void *kernels[WLM_MAX_PASSES], wlm_module **module);
wlm_status wlm_cuda_load_builtin(wlm_device *device, const wlm_spec *spec, wlm_program *program,
                                 void *kernels[WLM_MAX_PASSES], wlm_module **module);
void wlm_cuda_unload(wlm_device *device, wlm_module *module);
wlm_status wlm_cuda_launch(const wlm_device *device, const wlm_launch *launch, const struct wlm_args *args,
                           void *stream);
wlm_status wlm_cuda_kernel_facts(const wlm_device *device, const wlm_launch *launch, wlm_kernel_facts *facts);

wlm_status wlm_cuda_allocate(wlm_device *device, size_t size, void **memory);
void wlm_cuda_release(wlm_device *device, void *memory);
wlm_status wlm_cuda_copy_in(wlm_device *device, void *to, const void *from_host, size_t size);
wlm_status wlm_cuda_copy_out(wlm_device *device, void *to_host, const void *from, size_t size);
wlm_status wlm_cuda_fill(wlm_device *device, void *to, int byte, size_t size);
wlm_status wlm_cuda_synchronize(wlm_device *device, void *stream);

wlm_status wlm_cuda_timer_create(wlm_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                                 int64_t calls, wlm_timer **timer);
wlm_status wlm_cuda_timer_sample(wlm_timer *timer, double *seconds);
wlm_status wlm_cuda_timer_sample_cold(wlm_timer *timer, void *flush, size_t size, double *seconds);
void wlm_cuda_timer_destroy(wlm_timer *timer);

wlm_status wlm_cuda_watch_create(wlm_device *device, wlm_watch **watch);
wlm_status wlm_cuda_watch_start(wlm_watch *watch, void *stream);
wlm_status wlm_cuda_watch_stop(wlm_watch *watch, void *stream);
wlm_status wlm_cuda_watch_poll(wlm_watch *watch, int *done, double *seconds);
void wlm_cuda_watch_destroy(wlm_watch *watch);
int wlm_cuda_is_captured(wlm_device *device, void *stream);

#endif
