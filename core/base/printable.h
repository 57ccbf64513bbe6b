/* Text for people. Names of files and of matrices may hold anything, and control characters in them would act on the
 * reader's terminal or forge a line. */
#pragma once

#include <stddef.h>

/* The longest escape is that of one byte, \x1b, or of a character of two bytes, \u009b. */
#define WLMI_PRINTABLE_SIZE(length) (4 * (length) + 1)

/* Copies `text`, with escapes in place of control characters (\n, \x1b, \u009b) and of bytes that are no UTF-8 (\xff).
 * keep_lines = 1: line ends and tabs stay. What does not fit into `size` bytes with the NUL is left out, but no
 * character or escape is divided. */
void wlmi_printable(const char *text, int keep_lines, char *out, size_t size);

/* Well-formed UTF-8. */

/* Bytes of the well-formed character at `text`; 0 if there is none (overlong, surrogate, cut). */
int wlmi_utf8_length(const char *text);
int wlmi_is_utf8(const char *text);
