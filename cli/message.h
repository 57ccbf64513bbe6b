/* Messages of the command on standard error. */
#pragma once

/* Writes the text as one line, in place of a progress bar. Control characters in it, which may come from names, are
 * shown as escapes. */
void wlmi_print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
