/* The first GPU, opened once for a test program. */
#ifndef WLM_TESTS_GPU_H
#define WLM_TESTS_GPU_H

#include "runtime/dispatch/device.h"

/* The device; test_missing("gpu", ...) where there is none, a failure where it is there and does not open. */
wlmi_device *test_gpu(void);
/* Device memory with a copy of that; the device releases it. */
void *test_gpu_copy(const void *from, size_t size);
/* Group teardown for cmocka: closes it. */
int test_gpu_close(void **state);

#endif
