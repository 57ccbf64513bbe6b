/* Well-formed UTF-8. */
#ifndef WLM_BASE_UTF8_H
#define WLM_BASE_UTF8_H

/* Bytes of the well-formed character at `text`; 0 if there is none (overlong, surrogate, cut). */
int wlmi_utf8_length(const char *text);
int wlmi_is_utf8(const char *text);

#endif
