/* Suite operators: other operators and types beside the f32 sum, on one matrix at one width. */
#ifndef WLM_BENCH_OPERATORS_H
#define WLM_BENCH_OPERATORS_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_operators;

#endif
