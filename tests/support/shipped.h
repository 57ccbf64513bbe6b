/* The shipped database on an H200: the cases of bench suite core in f32 in it, and the decisions for them. Needs the
 * templates (support/emit_fixture.h). */
#pragma once

#include "db/store.h"
#include "select/select.h"

typedef struct shipped_case {
  const char *matrix, *problem;
  int64_t n;
  wlm_stats stats;
} shipped_case;

typedef struct shipped_database {
  wlmi_measurement_record *records;
  wlmi_model_record *models;
  shipped_case *cases; /* by matrix in the order of the suite, then by N; without values where both were measured */
  int64_t record_count, model_count, case_count;
} shipped_database;

void shipped_load(shipped_database *database);
void shipped_release(shipped_database *database);

/* Makes a snapshot from the measurements on all matrices except `without` (NULL = on all) and, if requested, the
 * model. A NULL database gives an empty snapshot. */
void shipped_snapshot_make(const shipped_database *database, const char *without, int with_model,
                           wlmi_snapshot *snapshot);

/* Times of all candidates of a case. The database keeps the fastest: all others took as long as the model predicts, and
 * at least as long as the slowest one kept. A model of another device predicts only how they compare. */
enum { SHIPPED_CANDIDATES = 2048, SHIPPED_CALLS = 1000 };
typedef struct shipped_times {
  double seconds[SHIPPED_CANDIDATES], prepare[SHIPPED_CANDIDATES]; /* infinite = not known; of preparing once */
  double best, best_of_many; /* the least time of one call; of SHIPPED_CALLS with its share of the preparation */
} shipped_times;
/* `model`: NULL = none. */
void shipped_times_fill(const wlmi_model *model, const wlmi_case *c, const wlmi_candidate_list *list,
                        shipped_times *times);

/* The group of a matrix in bench/suites/groups.tsv, or its name. */
void shipped_group_of(const char *matrix, char group[128]);

wlm_status shipped_choose(const shipped_case *c, const wlmi_snapshot *snapshot, wlmi_use use, int64_t calls,
                          wlmi_decision *decision);
