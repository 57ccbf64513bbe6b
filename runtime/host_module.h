/* A shared object in memory, loaded. */
#ifndef WLM_RUNTIME_HOST_MODULE_H
#define WLM_RUNTIME_HOST_MODULE_H

#include "runtime/dispatch/device.h"

wlm_status wlm_host_module_open(const void *image, size_t size, wlm_module **module);
void *wlm_host_module_symbol(const wlm_module *module, const char *name); /* NULL where there is no such symbol */
void wlm_host_module_close(wlm_module *module);                           /* of NULL does nothing */

#endif
