/* A device that runs emitted CUDA text on the CPU, with one fiber per thread, under ASan and UBSan. Plans, launches and
 * grids are the library's; device memory is ordinary memory of exactly the requested size. */
#ifndef WLM_TESTS_SIMT_DEVICE_H
#define WLM_TESTS_SIMT_DEVICE_H

#include "runtime/dispatch/device.h"

wlm_status simt_device_open(wlmi_device **device);
/* Of the order in which blocks, warps and lanes run from now on. */
void simt_device_seed(wlmi_device *device, uint64_t seed);
/* Whether kernels are from now on compiled without UBSan's check of addresses that wrap around, a third of the
 * compiler's time. ASan watches every access all the same. */
void simt_device_hurry(wlmi_device *device, int hurries);

#endif
