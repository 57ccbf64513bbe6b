/* Loads a shared object from memory. */
#ifndef WLM_RUNTIME_HOST_MODULE_H
#define WLM_RUNTIME_HOST_MODULE_H

#include "runtime/dispatch/device.h"

wlm_status wlmi_host_module_open(const void *image, size_t size, wlmi_module **module);
void *wlmi_host_module_symbol(const wlmi_module *module, const char *name); /* NULL where there is no such symbol */
void wlmi_host_module_close(wlmi_module *module);                           /* NULL is fine */

#endif
