/* The cost model: predicts the time of a candidate on a matrix that was never measured, for one problem class and one
 * device class. The tuner trains it (tuner/train.h), the database stores it as a blob, and selection evaluates it.
 *
 * Its prediction is wlmi_simple_seconds * exp(base + the leaves of all trees). All trees are complete. A node compares
 * one feature with a threshold and goes left unless the feature is greater; a node that divides nothing has an infinite
 * threshold. */
#pragma once

#include "select/features.h"

enum {
  WLMI_TREE_DEPTH = 4,
  WLMI_TREE_NODES = (1 << WLMI_TREE_DEPTH) - 1, /* children of node i: 2 i + 1 and 2 i + 2 */
  WLMI_TREE_LEAVES = 1 << WLMI_TREE_DEPTH,
  WLMI_MODEL_FAMILIES = 48,
  WLMI_FAMILY_NAME = 32
};

typedef struct wlmi_tree {
  unsigned char feature[WLMI_TREE_NODES];
  float threshold[WLMI_TREE_NODES];
  float leaf[WLMI_TREE_LEAVES];
} wlmi_tree;

typedef struct wlmi_model {
  char problems[WLMI_PROBLEM_CLASS]; /* what it was trained for: wlmi_model_class */
  wlmi_limits limits;                /* target, processors and l2_bytes of the device */
  int64_t made_at;                   /* seconds since 1970 */
  int64_t measurements;
  double base;
  double spread; /* standard deviation of log(time / prediction) on matrices left out of the training, for the faster
                  * candidates */
  int family_count;
  char families[WLMI_MODEL_FAMILIES][WLMI_FAMILY_NAME];
  uint8_t family_ids[WLMI_MODEL_FAMILIES]; /* wlmi_variant.family of each; 0 = this version does not have it */
  double prepare[WLMI_MODEL_FAMILIES]; /* preparing once costs as much as this many calls; 0 = it needs none, or was not
                                        * measured */
  const char *borrowed, *stale;        /* as in wlmi_case and wlmi_measured; not part of the blob */
  int64_t tree_count, point_count;
  wlmi_tree *trees;
  wlmi_point *points; /* of the cases that it was trained on */
} wlmi_model;

/* A case whose candidates are to be predicted, with what all candidates share. */
typedef struct wlmi_model_case {
  const wlmi_model *model;
  const wlmi_limits *limits;
  const wlm_stats *stats;
  int64_t n;
  double seconds;  /* wlmi_simple_seconds */
  double distance; /* to the nearest case of the training */
  float features[WLMI_FEATURES];
} wlmi_model_case;

/* `device`: what the launches of a model of another device class are compared with; its own has its limits. */
void wlmi_model_case_make(const wlmi_model *model, const wlmi_limits *device, const wlm_stats *stats,
                          const char *problem_key, int64_t n, wlmi_model_case *c);
/* Predicted seconds; 0 where the candidate's family was not part of the training, or the model does not know the table
 * of families. Allocates nothing. */
double wlmi_model_seconds(wlmi_model_case *c, const wlmi_candidate *candidate);
/* Standard deviation of log(time) for this case; grows with the distance to the training cases. */
double wlmi_model_spread(const wlmi_model_case *c);

/* Finds the ids of the model's families in the table; a blob has only their names. */
void wlmi_model_set_families(wlmi_model *model, const wlmi_families *families);
/* Index of a variant's family in the list; -1 = not there. */
int wlmi_model_family(const wlmi_model *model, const wlmi_variant *variant);
/* base + leaves. */
double wlmi_trees_sum(const wlmi_tree *trees, int64_t count, const float features[WLMI_FEATURES]);

/* Little-endian, with a version and a checksum. Reading checks every index, so evaluating a damaged blob is impossible:
 * WLM_ERR_DATABASE for damage, WLM_ERR_DATABASE_VERSION for a blob of another version. */
wlm_status wlmi_model_write(const wlmi_model *model, void **blob, size_t *size); /* wlmi_free */
wlm_status wlmi_model_read(const void *blob, size_t size, wlmi_model *model);
void wlmi_model_release(wlmi_model *model); /* also of a zeroed one */

/* Ranks candidates by the times that the model predicts. */

typedef struct wlmi_prediction {
  const wlmi_candidate *candidate;
  double seconds, prepare; /* of one call; of preparing once */
  double price;            /* seconds + prepare / calls */
} wlmi_prediction;

/* Finds the `most` candidates with the least price, the best first; equal ones keep the order of the list. Leaves out
 * candidates without a prediction, which *untrained counts, and for a single call those that must be prepared. Returns
 * how many. */
int wlmi_predict(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                 wlmi_prediction *best, int most, int *untrained);

/* 0 if the model cannot predict the candidate. */
int wlmi_predict_one(wlmi_model_case *c, const wlmi_candidate *candidate, int64_t calls, wlmi_prediction *out);

/* The fewest calls from which a prepared candidate beats the unprepared one that takes `plain` seconds. 0 if it needs
 * no preparing or there is no other, infinite if it never wins, and never 1, because nothing is prepared for one call.
 */
double wlmi_break_even(double seconds, double prepare, double plain);
/* Finds the prepared candidate that pays from the fewest calls on; 0 if there is none. Its price is for that many
 * calls. */
int wlmi_predict_soonest(wlmi_model_case *c, const wlmi_candidate *candidates, int64_t count, int64_t calls,
                         double plain, wlmi_prediction *soonest);
