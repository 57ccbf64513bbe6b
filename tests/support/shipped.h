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

wlm_status shipped_choose(const shipped_case *c, const wlmi_snapshot *snapshot, wlmi_use use, int64_t calls,
                          wlmi_decision *decision);
