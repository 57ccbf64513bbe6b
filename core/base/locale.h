/* printf and strtod follow the thread's locale, which may write the decimal point as a comma. Between enter and leave
 * this thread uses the C locale. */
#pragma once

#include <locale.h>

typedef struct wlmi_c_locale {
  locale_t own, before;
} wlmi_c_locale;

wlmi_c_locale wlmi_c_locale_enter(void);
void wlmi_c_locale_leave(wlmi_c_locale locale);
