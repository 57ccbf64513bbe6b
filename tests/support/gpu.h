/* The first GPU, opened once for a test program. */
#pragma once

#include "runtime/dispatch/device.h"

/* The device. Without a GPU it calls test_missing("gpu", ...); a GPU that does not open is a failure. */
wlmi_device *test_gpu(void);
/* A context on it without databases and kernel cache, for kernels that NVRTC compiles. */
wlm_context *test_gpu_context(void);
/* Copies host memory to new device memory, which the device releases. */
void *test_gpu_copy(const void *from, size_t size);
/* Group teardown of cmocka: closes the device. */
int test_gpu_close(void **state);
