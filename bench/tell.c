#include "bench/tell.h"

#include <math.h>

double wlm_tell_us(const wlm_entrant *entrant) { return entrant && !entrant->failure ? 1e6 * entrant->seconds : NAN; }

void wlm_tell_number(wlm_text *line, const char *name, int decimals, double value) {
  wlm_text_printf(line, "\"%s\":", name);
  if (isfinite(value))
    wlm_text_printf(line, "%.*f", decimals, value);
  else
    wlm_text_puts(line, "null");
}

void wlm_tell_error(wlm_text *line, const char *name, double value) {
  wlm_text_printf(line, "\"%s\":", name);
  if (isnan(value))
    wlm_text_puts(line, "null");
  else
    wlm_text_printf(line, "%.3g", value);
}

void wlm_tell_string(wlm_text *line, const char *name, const char *value) {
  wlm_text_printf(line, "\"%s\":", name);
  wlm_text_json_string(line, value);
}

void wlm_tell_cell(wlm_text *row, int width, double value) {
  if (isfinite(value))
    wlm_text_printf(row, " %*.2f", width, value);
  else
    wlm_text_printf(row, " %*s", width, "-");
}
