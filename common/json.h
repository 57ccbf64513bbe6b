/* Writes JSON into a text. Members and elements follow each other: the comma before one is put where the character
 * before it asks for one; after a newline another value begins. `key` is NULL for elements of arrays and for the
 * outermost value. */
#ifndef WLM_COMMON_JSON_H
#define WLM_COMMON_JSON_H

#include "common/text.h"

void wlmi_json_open(wlmi_text *out, const char *key, char opener); /* '{' or '[' */
void wlmi_json_close(wlmi_text *out, char closer);

void wlmi_json_string(wlmi_text *out, const char *key, const char *value); /* NULL gives null */
void wlmi_json_integer(wlmi_text *out, const char *key, int64_t value);
/* By a printf format of one double; null where it is not finite. */
void wlmi_json_real(wlmi_text *out, const char *key, const char *format, double value);
void wlmi_json_raw(wlmi_text *out, const char *key, const char *json);
/* Members that were written elsewhere, or none (NULL, ""). */
void wlmi_json_members(wlmi_text *out, const char *members);

#endif
