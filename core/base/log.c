#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/printable.h"

static wlm_log_fn sink;
static void *sink_user;
static wlm_log_level sink_level;

void wlm_set_log(wlm_log_fn fn, void *user, wlm_log_level max_level) {
  sink = fn;
  sink_user = user;
  sink_level = max_level;
}

void wlmi_log(wlm_log_level level, const char *format, ...) {
  if (!sink || level > sink_level) return;
  char text[2048], shown[WLM_PRINTABLE_SIZE(sizeof text)];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  wlmi_printable(text, 0, shown, sizeof shown);
  sink(sink_user, level, shown);
}
