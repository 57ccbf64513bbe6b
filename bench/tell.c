#include "bench/tell.h"

#include <math.h>

double wlmi_tell_us(const wlmi_entrant *entrant) { return entrant && !entrant->failure ? 1e6 * entrant->seconds : NAN; }

void wlmi_tell_number(wlmi_text *line, const char *name, int decimals, double value) {
  wlmi_text_printf(line, "\"%s\":", name);
  if (isfinite(value))
    wlmi_text_printf(line, "%.*f", decimals, value);
  else
    wlmi_text_puts(line, "null");
}

void wlmi_tell_error(wlmi_text *line, const char *name, double value) {
  wlmi_text_printf(line, "\"%s\":", name);
  if (isnan(value))
    wlmi_text_puts(line, "null");
  else
    wlmi_text_printf(line, "%.3g", value);
}

void wlmi_tell_string(wlmi_text *line, const char *name, const char *value) {
  wlmi_text_printf(line, "\"%s\":", name);
  wlmi_text_json_string(line, value);
}

void wlmi_tell_cell(wlmi_text *row, int width, double value) {
  if (isfinite(value))
    wlmi_text_printf(row, " %*.2f", width, value);
  else
    wlmi_text_printf(row, " %*s", width, "-");
}
