/* export --format c: gathers the tables of an exported library (exported/tables.h) in memory, and writes them as C. */
#pragma once

#include "core/base/strings.h"
#include "db/measurement_set.h"
#include "exported/write.h"
#include "generator/generator.h"

/* A problem at one width. */
typedef struct wlmi_export_problem {
  const char *name; /* its key and what the key leaves out, as in KEY+deterministic+bias+activation=tanh */
  char key[WLMI_SPEC_KEY];
  char *extras; /* the text of the activation lies here; NULL = none */
  int64_t n;
  wlmi_spec spec;
} wlmi_export_problem;

/* A target with the arrays that its rows point to. */
typedef struct wlmi_export_target {
  wlmi_limits limits;
  int is_ptx;
  wlmi_exported_problem *problems; /* in the order of wlmi_export.problems, without those that have no candidates */
  wlmi_exported_kernel *kernels;
  int64_t *of; /* of the problems: indices of wlmi_export.problems */
  int64_t problem_count, problem_capacity, kernel_count, kernel_capacity, of_capacity;
  int64_t choices; /* that were considered */
} wlmi_export_target;

/* A matrix that was measured. */
typedef struct wlmi_export_matrix {
  const char *name;
  wlm_stats stats;
} wlmi_export_matrix;

/* What the cases of a class are made of, and point into. */
typedef struct wlmi_export_learned {
  wlmi_measurement_set set;
  wlmi_cases cases;
} wlmi_export_learned;

enum { WLMI_EXPORT_TARGETS = 8 };

typedef struct wlmi_export {
  wlmi_generator *generator;
  wlm_store *stores[2]; /* the user's and the shipped one; NULL = none */
  wlmi_strings texts;
  wlmi_export_matrix *matrices;
  wlmi_exported_class *classes; /* own their pins and models */
  wlmi_export_learned *learned; /* of each class */
  wlmi_pass *passes;
  wlmi_export_problem *problems;
  wlmi_exported_source *images;
  wlm_stats *stats; /* for which choices are made besides those of the matrices */
  int64_t matrix_count, matrix_capacity, class_count, class_capacity, learned_capacity, pass_count, pass_capacity,
      problem_count, problem_capacity, image_count, image_capacity, stats_count, stats_capacity;
  wlmi_export_target targets[WLMI_EXPORT_TARGETS];
  int target_count;
} wlmi_export;

/* export_gather.c: fills in targets from a list as in "sm_80,sm_90,host" and everything that was learned on their
 * devices. `list_path` names a file of problems, widths and statistics (docs/exporting.md); NULL = all that was tuned.
 */
wlm_status wlmi_export_gather(wlmi_export *e, const char *archs, const char *list_path);
void wlmi_export_release(wlmi_export *e);

void wlmi_export_target_name(const wlmi_export_target *target, char name[32]); /* "sm_90", "host" */

/* export_cover.c: finds the kernels that the targets can choose, and emits and compiles them. */
wlm_status wlmi_export_cover(wlmi_export *e);

/* export_write.c */
/* Makes the folder if it is not there. One with other files than those of an export is refused. */
wlm_status wlmi_export_folder(const char *folder);
wlm_status wlmi_export_write(const wlmi_export *e, const char *folder);
