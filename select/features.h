/* The features of the cost model: numbers that describe the launch of a candidate on a matrix. */
#pragma once

#include "core/problem/program.h"

enum wlmi_feature {
  /* of the matrix and N */
  WLMI_FEATURE_WORK,      /* log2 of rows + non-zeros */
  WLMI_FEATURE_MEAN,      /* log2 of non-zeros a row */
  WLMI_FEATURE_CV,        /* log2 of the row lengths' coefficient of variation */
  WLMI_FEATURE_IMBALANCE, /* log2 of the longest row over a multiprocessor's even share */
  WLMI_FEATURE_SHORT,     /* share of rows with at most 4 non-zeros */
  WLMI_FEATURE_N,         /* log2 */
  WLMI_FEATURE_B_IN_L2,   /* log2 of B's bytes over those of the last-level cache */
  WLMI_FEATURE_GATHERED,  /* log2 of non-zeros * N */
  WLMI_FEATURE_VALUES,    /* whether A has any */
  WLMI_CASE_FEATURES,
  /* of the candidate on it */
  WLMI_FEATURE_FAMILY = WLMI_CASE_FEATURES, /* index in the model's list */
  WLMI_FEATURE_WIDTH,                       /* log2 of the columns of a block over N */
  WLMI_FEATURE_LANES,                       /* log2 of the parameter of this name */
  WLMI_FEATURE_BATCH,                       /* the parameter of this name */
  WLMI_FEATURE_THREADS,                     /* log2, of a block */
  WLMI_FEATURE_UNITS,                       /* log2 of the rows or non-zeros of a block */
  WLMI_FEATURE_BLOCKS,                      /* log2 of blocks for each multiprocessor */
  WLMI_FEATURE_WAVES,                       /* how often the device is filled, up to 4 */
  WLMI_FEATURE_SHARE,                       /* log2 of rows + non-zeros for each block */
  WLMI_FEATURE_UNEVEN,                      /* log2 of the largest block's share over the mean */
  WLMI_FEATURE_CRITICAL,                    /* log2 of what a thread of the largest block has to do */
  WLMI_FEATURE_SERIAL,                      /* log2 of the non-zeros that one thread walks one after the other */
  WLMI_FEATURE_STEPS,                       /* log2 of the same in batches */
  WLMI_FEATURE_SPANS,                       /* log2 of the blocks that the longest row may reach over */
  WLMI_FEATURE_FILLED,                      /* log2 of how often the device is filled */
  WLMI_FEATURE_WALKS,                       /* blocks side by side: how often A is read */
  WLMI_FEATURE_PREPARED,                    /* whether it was prepared before */
  WLMI_FEATURES
};

/* Fill their part of `features`. None is ever infinite or no number, whatever the statistics. */
void wlmi_features_of_case(const wlmi_limits *limits, const wlm_stats *stats, int64_t n, int has_values,
                           float features[WLMI_FEATURES]);
void wlmi_features_of_candidate(const wlmi_limits *limits, const wlm_stats *stats, int64_t n,
                                const wlmi_candidate *candidate, int family, float features[WLMI_FEATURES]);

/* The time that a call would take if it only launched and moved bytes. The model predicts the time divided by this. */
double wlmi_simple_seconds(const wlmi_limits *limits, const wlm_stats *stats, int64_t n);

/* Coordinates of a case, from which distances follow. Each axis counts 1 where the best kernel begins to change: a
 * factor of 4 in rows, a factor of 2 in nnz/row or N, one CV class. A matrix within WLMI_NEAR counts as the same graph
 * with a few edges more or less, and its fastest kernel is taken; that of a matrix farther away is no better than what
 * rules name. At WLMI_FAR a model's spread is twice that of its training cases; farther
 * away than WLMI_MODEL_FAR it decides nothing. */
#define WLMI_NEAR      0.25
#define WLMI_FAR       3.0
#define WLMI_MODEL_FAR 8.0
enum { WLMI_PLACE_AXES = 4 };
typedef struct wlmi_point {
  float at[WLMI_PLACE_AXES];
} wlmi_point;
wlmi_point wlmi_point_of(const wlm_stats *stats, int64_t n);
double wlmi_point_distance(const wlmi_point *a, const wlmi_point *b);

/* A problem class: problems with the same types and sampling, whatever the operator. Their kernels move the same bytes
 * and rank alike. Derived from a problem key:
 * "dense=f32,rowptr=i32,colind=i32,sample=none"; whether A has values is a feature. "" if the key is invalid. */
enum { WLMI_PROBLEM_CLASS = 160 };
void wlmi_problem_class(const char *problem_key, char out[WLMI_PROBLEM_CLASS]);
int wlmi_problem_has_values(const char *problem_key);

/* Whether kernels rank as those of a sum of products: for products, and for messages without a line of n for each edge.
 * 0 for other operations. */
int wlmi_ranks_as_product(const wlmi_spec *spec);

/* What one model is trained for: a problem class, without products of at most WLMI_NARROW columns; or these products,
 * whose kernels lay lanes over the non-zeros and so follow other rules: the class with ",narrow=1". A message that
 * ranks as a product is of the product's class. has_edge_lines: of the message's spec. */
enum { WLMI_NARROW = 8 };
void wlmi_model_class(const char *problem_key, int64_t n, int has_edge_lines, char out[WLMI_PROBLEM_CLASS]);
/* The same without a spec; parses a message's text. WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_model_class_of_key(const char *problem_key, int64_t n, char out[WLMI_PROBLEM_CLASS]);
