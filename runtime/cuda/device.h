/* Declarations that the files of the cuda device share. */
#pragma once

#include <pthread.h>

#include "runtime/cuda/driver.h"
#include "runtime/dispatch/device.h"

typedef struct wlmi_cuda_block wlmi_cuda_block;

typedef struct wlmi_cuda_device {
  wlmi_device base;
  int ordinal;
  CUdevice handle;
  int arch;          /* 90 for sm_90; base.info.limits.arch is what code is compiled for */
  CUcontext context; /* the primary one, which the CUDA runtime and PyTorch use as well */
  CUmemoryPool pool; /* for memory in a stream's order; NULL if the device has no pools */
  int forks;         /* wlmi_fork_count() when the device was opened */
  pthread_mutex_t block_lock;
  wlmi_cuda_block *blocks; /* blocks from the caller's allocator, with their sizes, which releasing needs */
} wlmi_cuda_device;

/* WLM_ERR_DEVICE in a child of fork. The driver and NVRTC do not work there. */
wlm_status wlmi_cuda_check_process(const wlmi_device *device);

/* Driver calls act on the thread's current context. Enter makes the device's context current on any thread; leave
 * restores the previous one. */
typedef struct wlmi_cuda_scope {
  int pushed;
} wlmi_cuda_scope;
wlm_status wlmi_cuda_enter(const wlmi_device *device, wlmi_cuda_scope *scope);
void wlmi_cuda_leave(const wlmi_cuda_scope *scope);

/* Enters until the function returns; returns the status if that fails. */
#define WLM_CUDA_SCOPE(device)                                           \
  wlmi_cuda_scope scope __attribute__((cleanup(wlmi_cuda_leave))) = {0}; \
  WLM_CHECK(wlmi_cuda_enter(device, &scope))

/* The device's functions, by file (runtime/dispatch/device.h says what they do). */
wlm_status wlmi_cuda_compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size);
wlm_status wlmi_cuda_load(wlmi_device *device, const wlmi_program *program, const void *image, size_t size,
                          void *kernels[WLMI_MAX_PASSES], wlmi_module **module);
void wlmi_cuda_unload(wlmi_device *device, wlmi_module *module);
wlm_status wlmi_cuda_launch(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                            void *stream);
/* The same where the device's context is current; its detail text does not name the grid. */
wlm_status wlmi_cuda_launch_here(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args,
                                 void *stream);
wlm_status wlmi_cuda_kernel_facts(const wlmi_device *device, const wlmi_launch *launch, wlmi_kernel_facts *facts);

wlm_status wlmi_cuda_pool_open(wlmi_cuda_device *cuda); /* the context is current */
void wlmi_cuda_pool_close(wlmi_cuda_device *cuda);
wlm_status wlmi_cuda_allocate(wlmi_device *device, size_t size, void **memory);
void wlmi_cuda_release(wlmi_device *device, void *memory);
wlm_status wlmi_cuda_allocate_on(wlmi_device *device, void *stream, size_t size, void **memory);
void wlmi_cuda_release_on(wlmi_device *device, void *stream, void *memory, size_t size);

wlm_status wlmi_cuda_copy_in(wlmi_device *device, void *to, const void *from_host, size_t size);
wlm_status wlmi_cuda_synchronize(wlmi_device *device, void *stream);
wlm_status wlmi_cuda_copy_out(wlmi_device *device, void *stream, void *to_host, const void *from, size_t size);
wlm_status wlmi_cuda_fill(wlmi_device *device, void *stream, void *to, int byte, size_t size);
wlm_status wlmi_cuda_wait(wlmi_device *device, void *stream);

wlm_status wlmi_cuda_timer_create(wlmi_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                                  int64_t calls, wlmi_timer **timer);
wlm_status wlmi_cuda_timer_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds);
void wlmi_cuda_timer_destroy(wlmi_timer *timer);

wlm_status wlmi_cuda_watch_create(wlmi_device *device, wlmi_watch **watch);
wlm_status wlmi_cuda_watch_start(wlmi_watch *watch, void *stream);
wlm_status wlmi_cuda_watch_stop(wlmi_watch *watch, void *stream);
wlm_status wlmi_cuda_watch_poll(wlmi_watch *watch, int *done, double *seconds);
void wlmi_cuda_watch_destroy(wlmi_watch *watch);
int wlmi_cuda_is_captured(wlmi_device *device, void *stream);
