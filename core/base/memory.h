/* Host memory, through the caller's allocator if there is one, and the allocator that was set for device memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

void *wlmi_alloc(size_t size);                    /* NULL when out of memory; size 0 gives a valid pointer */
void *wlmi_alloc_zero(size_t count, size_t size); /* also NULL when count * size overflows */
void *wlmi_realloc(void *old, size_t size);
void wlmi_free(void *pointer);
char *wlmi_strdup(const char *text); /* NULL stays NULL */

/* count elements of `size` bytes into *out; WLM_ERR_OUT_OF_MEMORY or WLM_ERR_OVERFLOW with the size in the detail text.
 */
wlm_status wlmi_alloc_array(int64_t count, size_t size, const char *what, void **out);
/* Room for one more element behind the first `count` of a growing array; same errors. */
wlm_status wlmi_grow(void **array, int64_t count, int64_t *capacity, size_t size, const char *what);

/* The allocator that wlm_set_device_allocator set; NULL = device memory comes from the driver. */
const wlm_device_allocator *wlmi_device_allocator(void);
