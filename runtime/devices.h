/* Finds and opens devices. */
#ifndef WLM_RUNTIME_DEVICES_H
#define WLM_RUNTIME_DEVICES_H

#include "runtime/dispatch/device.h"

wlm_status wlmi_host_device_open(wlmi_device **device);
/* WLM_ERR_NO_DEVICE where there is no driver, no GPU or no such ordinal; the detail text says which. */
wlm_status wlmi_cuda_device_open(int ordinal, wlmi_device **device);

/* "host", "cuda", "cuda:1"; NULL = the first GPU, or the host where there is none. */
wlm_status wlmi_device_open(const char *name, wlmi_device **device);

#endif
