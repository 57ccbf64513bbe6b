/* Simulated measurements with a planted winner, and a cost model that learned from them. Include after cmocka; the
 * group setup is emit_begin of support/emit_fixture.h, the group teardown planted_end. */
#pragma once

#include "core/problem/measurement.h"
#include "generator/generator.h"
#include "select/model.h"

enum { PLANTED_MATRICES = 40, PLANTED_WIDTHS = 2 };
extern const char planted_key[];
extern const wlmi_limits planted_limits;
extern const int64_t planted_widths[PLANTED_WIDTHS];

/* What is drawn next depends on the seed alone. */
extern uint64_t planted_seed;
/* Uniform in [low, high). */
double planted_between(double low, double high);
wlm_stats planted_matrix(void);

/* The planted time, relative to the time to move the bytes: merge_path is best with four blocks per multiprocessor
 * and lanes as wide as N, row_vec with even rows; all others are slow. */
double planted_time(const wlm_stats *s, int64_t n, const char *variant);

/* To be dropped by wlmi_candidates_drop. */
const wlmi_candidate_list *planted_candidates_for(const char *problem, int64_t n);
const wlmi_candidate_list *planted_candidates(int64_t n); /* for planted_key */

typedef struct planted_world {
  wlm_stats matrices[PLANTED_MATRICES];
  wlmi_measurement_record *records;
  int64_t count;
  char (*names)[WLMI_VARIANT_NAME];
} planted_world;

/* Measurements of all candidates, except row_block, on `count` matrices. */
planted_world planted_world_make(int count);
void planted_world_end(planted_world *w);

/* A model of the world of so many matrices; without trees if they are too few. */
wlmi_model planted_train(int matrices);

/* A model of PLANTED_MATRICES, trained once. It also restores the seed, so each test draws the same matrices. */
wlmi_model *planted_learned(void);
int planted_end(void **state);
