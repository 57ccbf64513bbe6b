/* Parses decimal numbers quickly, exactly, and independently of the locale. */
#pragma once

#include <locale.h>
#include <stdint.h>

/* [+-]digits. Returns the character after the number, or NULL if there is no number or it does not fit. */
const char *wlmi_parse_int64(const char *text, int64_t *value);

/* [+-]digits[.digits][e[+-]digits], rounded to the nearest float. NULL also for a number beyond the range of float; a
 * number smaller than the smallest float becomes 0. `c_locale` is newlocale(LC_ALL_MASK, "C", 0). */
const char *wlmi_parse_float(const char *text, locale_t c_locale, float *value);
