#include "core/base/locale.h"

wlmi_c_locale wlmi_c_locale_enter(void) {
  locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return (wlmi_c_locale){own, uselocale(own)}; /* without memory for a new one the locale stays as it is */
}

void wlmi_c_locale_leave(wlmi_c_locale locale) {
  uselocale(locale.before);
  if (locale.own) freelocale(locale.own);
}
