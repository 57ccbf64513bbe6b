/* The name of a synthetic matrix that has given stats, such as those of a recorded problem. */
#pragma once

#include "warploom/warploom.h"

enum { WLM_STAND_IN_NAME = 192 };

/* An input for wlmi_input_read: a synthetic matrix with the rows, columns, non-zeros and longest row of the stats, and
 * with their CV as far as possible. Its columns are random, because the stats say nothing about them. */
void wlmi_stand_in_name(const wlm_stats *stats, char name[WLM_STAND_IN_NAME]);
