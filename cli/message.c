#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/progress.h"
#include "core/base/printable.h"

void wlmi_print_message(const char *format, ...) {
  char text[8192], shown[WLM_PRINTABLE_SIZE(sizeof text)];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  wlmi_printable(text, 0, shown, sizeof shown);
  wlmi_progress_clear();
  fprintf(stderr, "%s\n", shown);
}
