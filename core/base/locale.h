/* printf and strtod follow the thread's locale, which may write the decimal point as a comma. Between enter and leave
 * this thread uses the C locale. */
#pragma once

#include <locale.h>

typedef struct wlmi_c_locale {
  locale_t own, before;
} wlmi_c_locale;

static inline wlmi_c_locale wlmi_c_locale_enter(void) {
  locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return (wlmi_c_locale){own, uselocale(own)}; /* without memory for a new one the locale stays as it is */
}

static inline void wlmi_c_locale_leave(wlmi_c_locale locale) {
  uselocale(locale.before);
  if (locale.own) freelocale(locale.own);
}
