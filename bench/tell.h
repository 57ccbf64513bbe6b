/* How what was measured is written: members of a line of the results file, cells of the table for people. */
#ifndef WLM_BENCH_TELL_H
#define WLM_BENCH_TELL_H

#include "bench/entrant.h"
#include "common/text.h"

double wlm_tell_us(const wlm_entrant *entrant); /* NaN where there is none (NULL) or it failed */

void wlm_tell_number(wlm_text *line, const char *name, int decimals, double value); /* "name":1.250 or "name":null */
void wlm_tell_string(wlm_text *line, const char *name, const char *value);          /* "name":"value" */
void wlm_tell_error(wlm_text *line, const char *name, double value);                /* "name":1.2e-07 or "name":null */
void wlm_tell_cell(wlm_text *row, int width, double value);                         /* a space and 1.25 or - */

#endif
