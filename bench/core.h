/* Suite "core": every candidate for a plain fp32 sum, without and with preparation, GE-SpMM as published, what the
 * dispatcher chooses, and cuSPARSE, on one matrix at one width. */
#ifndef WLM_BENCH_CORE_H
#define WLM_BENCH_CORE_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_core;

#endif
