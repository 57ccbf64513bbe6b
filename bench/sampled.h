/* Suite "sampled": what ES-SpMM's sampling gains on one matrix at one width, over its strategies and sample widths. */
#ifndef WLM_BENCH_SAMPLED_H
#define WLM_BENCH_SAMPLED_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_sampled;

#endif
