/* The tuned cases that lie nearest, for people who want to know what a choice rests on. */
#ifndef WLM_RUNTIME_DISPATCH_NEIGHBOURS_H
#define WLM_RUNTIME_DISPATCH_NEIGHBOURS_H

#include "runtime/dispatch/choose.h"

/* Of the same class of problems, the nearest first; returns how many. */
int wlmi_neighbours_find(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem_key, int64_t n,
                         wlmi_neighbour neighbours[WLM_NEIGHBOURS]);

#endif
