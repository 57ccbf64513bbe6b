/* Writes JSON into a text. Commas are written automatically: a member or element gets one if the text before it needs
 * it. After a newline a new value begins. `key` is NULL for elements of arrays and for the outermost value. */
#pragma once

#include "core/base/text.h"

void wlmi_json_open(wlmi_text *out, const char *key, char opener); /* '{' or '[' */
void wlmi_json_close(wlmi_text *out, char closer);

/* NULL gives null. Bytes that are no UTF-8 are escaped as wlmi_printable does. */
void wlmi_json_string(wlmi_text *out, const char *key, const char *value);
void wlmi_json_integer(wlmi_text *out, const char *key, int64_t value);
/* `format` is a printf format for one double. Writes null if the value is not finite. */
void wlmi_json_real(wlmi_text *out, const char *key, const char *format, double value);
void wlmi_json_raw(wlmi_text *out, const char *key, const char *json);
/* Members that the caller already wrote as text; NULL or "" = none. */
void wlmi_json_members(wlmi_text *out, const char *members);
/* Several members by their keys and formats, as in "name=%s rows=%jd mean=%.15g stale=%i": a text, null where it is "",
 * an int64_t, a double, and true or false; %d is an int. */
void wlmi_json_put(wlmi_text *out, const char *formats, ...) __attribute__((format(printf, 2, 3)));
