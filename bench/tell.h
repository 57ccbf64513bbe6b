/* Writes measurements as members of a line of the results file and as cells of the table for people. */
#ifndef WLM_BENCH_TELL_H
#define WLM_BENCH_TELL_H

#include "bench/entrant.h"
#include "common/text.h"

double wlmi_tell_us(const wlmi_entrant *entrant); /* NaN where there is none (NULL) or it failed */

void wlmi_tell_number(wlmi_text *line, const char *name, int decimals, double value); /* "name":1.250 or "name":null */
void wlmi_tell_string(wlmi_text *line, const char *name, const char *value);          /* "name":"value" */
void wlmi_tell_error(wlmi_text *line, const char *name, double value); /* "name":1.2e-07 or "name":null */
void wlmi_tell_cell(wlmi_text *row, int width, double value);          /* a space and 1.25 or - */

#endif
