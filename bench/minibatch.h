/* Suite minibatch: products with neighbour-sampled blocks, each used once, against cuSPARSE. */
#ifndef WLM_BENCH_MINIBATCH_H
#define WLM_BENCH_MINIBATCH_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_minibatch;

#endif
