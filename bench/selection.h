/* Suite selection: how good the choice is on a tuned matrix, on one left out of all that was learned, and by rule. */
#ifndef WLM_BENCH_SELECTION_H
#define WLM_BENCH_SELECTION_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_selection;

#endif
