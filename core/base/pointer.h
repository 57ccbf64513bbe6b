/* Checks the pointers that callers pass before a kernel uses them. On a GPU a wrong address is a fault that makes the
 * whole CUDA context unusable. */
#pragma once

#include <stddef.h>

#include "core/base/status.h"

enum { WLMI_WORK_ALIGNMENT = 16 }; /* of workspace and prepared memory, where kernels move 16 bytes at once */

typedef struct wlmi_pointer {
  const char *name;
  const void *address;
  size_t unit; /* bytes of an element; the address must be a multiple of it */
  int needed;  /* may not be NULL */
} wlmi_pointer;

/* WLM_ERR_INVALID_ARGUMENT naming the first pointer that cannot be used. `call` is the function for the message,
 * "wlm_plan_execute". */
wlm_status wlmi_check_pointers(const char *call, const wlmi_pointer *pointers, int count);
