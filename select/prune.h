/* Which measurements no choice needs. */
#pragma once

#include "select/classes.h"

/* Marks measurements that `db prune` may delete: superfluous[i] = 1 for those that no case uses (wlmi_cases_superseded)
 * and, if keep is not 0, for candidates that no choice needs, as wlmi_store_prune says (db/store.h). */
wlm_status wlmi_class_superfluous(const wlmi_class *class, int64_t keep, char *superfluous);
