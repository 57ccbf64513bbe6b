#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"

static _Thread_local char detail[4096];

static const struct {
  const char *name, *message;
} texts[] = {
#define WLM_STATUS_TEXT(name, message) {"WLM_" #name, message},
    WLM_STATUS_MAP(WLM_STATUS_TEXT)
#undef WLM_STATUS_TEXT
};

static int known(wlm_status status) { return (size_t)status < sizeof texts / sizeof *texts; }

int wlm_version(void) { return WLM_VERSION_MAJOR * 10000 + WLM_VERSION_MINOR * 100 + WLM_VERSION_PATCH; }

#define WLM_TEXT(x)         #x
#define WLM_DOTTED(a, b, c) WLM_TEXT(a) "." WLM_TEXT(b) "." WLM_TEXT(c)
const char *wlm_version_string(void) { return WLM_DOTTED(WLM_VERSION_MAJOR, WLM_VERSION_MINOR, WLM_VERSION_PATCH); }

const char *wlm_status_name(wlm_status status) { return known(status) ? texts[status].name : "WLM_ERR_UNKNOWN"; }

const char *wlm_status_message(wlm_status status) { return known(status) ? texts[status].message : "unknown status"; }

const char *wlm_error_detail(void) { return detail; }

void wlmi_clear_error(void) { detail[0] = 0; }

wlm_status wlmi_finish(wlm_status status) {
  if (status == WLM_OK) wlmi_clear_error();
  return status;
}

static void print(int keep_lines, const char *format, va_list args, char *out, size_t size) {
  char text[sizeof detail];
  *text = 0;
  vsnprintf(text, sizeof text, format, args); /* `args` may hold the detail text */
  wlmi_printable(text, keep_lines, out, size);
}

wlm_status wlmi_fail(wlm_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  print(status == WLM_ERR_COMPILE, format, args, detail, sizeof detail);
  va_end(args);
  return status;
}

wlm_status wlmi_fail_in(wlm_status status, const char *format, ...) {
  char prefix[512];
  va_list args;
  va_start(args, format);
  print(0, format, args, prefix, sizeof prefix);
  va_end(args);
  size_t length = strlen(prefix), kept = strlen(detail);
  if (kept > sizeof detail - length - 3) kept = sizeof detail - length - 3;
  memmove(detail + length + 2, detail, kept);
  detail[length + 2 + kept] = 0;
  memcpy(detail, prefix, length);
  memcpy(detail + length, ": ", 2);
  return status;
}

/* ---- the log ---- */

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
  char shown[WLMI_PRINTABLE_SIZE(sizeof detail)];
  va_list args;
  va_start(args, format);
  print(0, format, args, shown, sizeof shown);
  va_end(args);
  sink(sink_user, level, shown);
}
