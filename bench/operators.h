/* Suite operators: other operators and types beside the f32 sum, on one matrix at one width. */
#ifndef WLM_BENCH_OPERATORS_H
#define WLM_BENCH_OPERATORS_H

#include "bench/case.h"

extern const wlm_bench_suite wlm_suite_operators;

#endif
