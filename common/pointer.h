/* What callers pass in, looked at before a kernel does: on a GPU a wrong address is a fault that poisons the context.
 */
#ifndef WLM_COMMON_POINTER_H
#define WLM_COMMON_POINTER_H

#include <stddef.h>

#include "common/status.h"

enum { WLM_WORK_ALIGNMENT = 16 }; /* of workspace and prepared memory: kernels move 16 bytes at once there */

typedef struct wlmi_pointer {
  const char *name;
  const void *address;
  size_t unit; /* bytes of an element, which the address is a multiple of */
  int needed;  /* may not be NULL */
} wlmi_pointer;

/* WLM_ERR_INVALID_ARGUMENT naming the first of them that cannot be used; `call` is who asks, "wlm_plan_execute". */
wlm_status wlmi_check_pointers(const char *call, const wlmi_pointer *pointers, int count);

#endif
