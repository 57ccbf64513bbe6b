/* Suite dispatch: what the library's calls cost on the host. */
#ifndef WLM_BENCH_DISPATCH_H
#define WLM_BENCH_DISPATCH_H

#include "bench/case.h"

extern const wlmi_bench_suite wlmi_suite_dispatch;

#endif
