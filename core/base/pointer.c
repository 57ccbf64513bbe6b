#include "core/base/pointer.h"

#include <stdint.h>

wlm_status wlmi_check_pointers(const char *call, const wlmi_pointer *pointers, int count) {
  for (const wlmi_pointer *p = pointers; p < pointers + count; p++) {
    if (!p->address && p->needed) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, p->name);
    if ((uintptr_t)p->address % p->unit)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: %s is %p, which is no multiple of %zu bytes: it is misaligned",
                       call, p->name, p->address, p->unit);
  }
  return WLM_OK;
}
