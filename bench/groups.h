/* Which matrices are siblings: bench/suites/groups.tsv. */
#ifndef WLM_BENCH_GROUPS_H
#define WLM_BENCH_GROUPS_H

#include "common/status.h"

enum { WLM_GROUP_NAME = 128 };

/* The group of a matrix's name, or the name itself where it has no siblings. */
void wlmi_group_of(const char *matrix, char group[WLM_GROUP_NAME]);

#endif
