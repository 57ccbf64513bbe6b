/* The learned model: how long a candidate will take on a matrix that was never seen, for one class of problems and
 * of devices. It is data: the tuner trains it (tuner/train.h), the database keeps it as a blob, dispatch evaluates it.
 *
 * Its prediction is wlm_simple_seconds * exp(base + the leaves of all trees). A tree is complete: a node compares one
 * feature with a threshold and goes left where it is not above; a node with nothing to tell apart has an
 * infinite threshold. */
#ifndef WLM_RUNTIME_DISPATCH_MODEL_H
#define WLM_RUNTIME_DISPATCH_MODEL_H

#include "runtime/dispatch/features.h"

enum {
  WLM_TREE_DEPTH = 4,
  WLM_TREE_NODES = (1 << WLM_TREE_DEPTH) - 1, /* children of node i: 2 i + 1 and 2 i + 2 */
  WLM_TREE_LEAVES = 1 << WLM_TREE_DEPTH,
  WLM_MODEL_FAMILIES = 48,
  WLM_FAMILY_NAME = 32
};

typedef struct wlm_tree {
  unsigned char feature[WLM_TREE_NODES];
  float threshold[WLM_TREE_NODES];
  float leaf[WLM_TREE_LEAVES];
} wlm_tree;

typedef struct wlm_model {
  char problems[WLM_PROBLEM_CLASS]; /* the class of problems that it was trained on */
  wlm_machine machine;
  int64_t made_at; /* seconds since 1970 */
  int64_t measurements;
  double base;
  double spread; /* of log(time / prediction) on matrices left out of the training, for candidates worth choosing */
  int family_count;
  char families[WLM_MODEL_FAMILIES][WLM_FAMILY_NAME];
  double prepare[WLM_MODEL_FAMILIES]; /* preparing once takes so many calls; 0 = it needs none, or nobody measured it */
  const char *borrowed, *stale;       /* as in wlm_case and wlm_ranked; the blob does not know */
  int64_t tree_count, place_count;
  wlm_tree *trees;
  wlm_place *places; /* of the cases that it was trained on */
} wlm_model;

/* What is asked, prepared once for all candidates. */
typedef struct wlm_model_case {
  const wlm_model *model;
  const wlm_stats *stats;
  int64_t n;
  double seconds;  /* wlm_simple_seconds */
  double distance; /* to the nearest case of the training */
  float features[WLM_FEATURES];
} wlm_model_case;

void wlm_model_ask(const wlm_model *model, const wlm_stats *stats, const char *problem_key, int64_t n,
                   wlm_model_case *asked);
/* Predicted seconds; 0 where the candidate's family was not part of the training. Allocates nothing. */
double wlm_model_seconds(wlm_model_case *asked, const wlm_candidate *candidate);
/* Of log(time): grows with the distance from what was trained on. */
double wlm_model_spread(const wlm_model_case *asked);

/* Index of a variant's family in the list; -1 = not there. */
int wlm_model_family(const wlm_model *model, const char *variant);
/* base + leaves. */
double wlm_trees_sum(const wlm_tree *trees, int64_t count, const float features[WLM_FEATURES]);

/* Little-endian, with a version and a checksum. What is read is checked so that evaluating it can never go astray:
 * WLM_ERR_DATABASE where it is damaged, WLM_ERR_DATABASE_VERSION where another version wrote it. */
wlm_status wlm_model_write(const wlm_model *model, void **blob, size_t *size); /* wlm_free */
wlm_status wlm_model_read(const void *blob, size_t size, wlm_model *model);
void wlm_model_release(wlm_model *model); /* also of a zeroed one */

#endif
