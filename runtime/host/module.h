/* The functions of host kernels. */
#pragma once

#include "runtime/dispatch/device.h"

/* Loads a shared object from memory; with size 0 the image is a list of functions that are linked in
 * (exported/tables.h). */
wlm_status wlmi_host_module_open(const void *image, size_t size, wlmi_module **module);
void *wlmi_host_module_symbol(const wlmi_module *module, const char *name); /* NULL where there is no such symbol */
void wlmi_host_module_close(wlmi_module *module);                           /* NULL is fine */
