/* Status values with a detail text per thread, whose enum is public, and the log. */
#pragma once

#include <stdio.h>

#include "warploom/warploom.h"

/* Sets this thread's detail text and returns `status`, so that a failure is one line:
 *   return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno));
 * Control characters, which names may hold, become escapes (core/base/printable.h). The line ends of a compiler's
 * output, WLM_ERR_COMPILE, stay. */
wlm_status wlmi_fail(wlm_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "text: " before the detail text that is there and returns `status`. */
wlm_status wlmi_fail_in(wlm_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wlmi_clear_error(void);
/* What a function of the interface returns at its end: after WLM_OK there is no detail text, also if something failed
 * meanwhile for which there was another way. */
wlm_status wlmi_finish(wlm_status status);

/* Runs an expression of type wlm_status and leaves the function by `goto done` if it failed,
 * with the status in the local variable `status`: cleanup stays in one place. */
#define WLM_TRY(expression)          \
  do {                               \
    status = (expression);           \
    if (status != WLM_OK) goto done; \
  } while (0)

/* The same in a function that has nothing to clean up: returns the status of a failed expression. */
#define WLM_CHECK(expression)                            \
  do {                                                   \
    const wlm_status checked_status = (expression);      \
    if (checked_status != WLM_OK) return checked_status; \
  } while (0)

void wlmi_log(wlm_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
