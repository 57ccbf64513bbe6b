/* A device that runs emitted CUDA text on the CPU, with one fiber per thread, under ASan and UBSan. Plans, launches and
 * grids are the library's; device memory is ordinary memory of exactly the requested size. */
#pragma once

#include "runtime/dispatch/device.h"

wlm_status simt_device_open(wlmi_device **device);
/* Sets the seed of the order in which blocks, warps and lanes run. */
void simt_device_seed(wlmi_device *device, uint64_t seed);
/* With hurries = 1, kernels are compiled without UBSan's check of pointer overflow, which takes a third of the
 * compile time. ASan checks every access anyway. */
void simt_device_hurry(wlmi_device *device, int hurries);
