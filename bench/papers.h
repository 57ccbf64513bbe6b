/* Suite "papers": the steps of GE-SpMM against each other on one matrix at one width, in the paper's unit. */
#ifndef WLM_BENCH_PAPERS_H
#define WLM_BENCH_PAPERS_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_papers;

#endif
