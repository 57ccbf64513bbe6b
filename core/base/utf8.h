/* Well-formed UTF-8. */
#pragma once

/* Bytes of the well-formed character at `text`; 0 if there is none (overlong, surrogate, cut). */
int wlmi_utf8_length(const char *text);
int wlmi_is_utf8(const char *text);
