/* Fits a number to features by least squares boosting of small complete trees (select/model.h). */
#pragma once

#include "select/model.h"

typedef struct wlmi_boost_sample {
  float features[WLMI_FEATURES]; /* finite */
  float target;
  float weight;  /* weight of its error, above 0 */
  int64_t group; /* samples of one group follow each other */
} wlmi_boost_sample;

typedef struct wlmi_boost_options {
  int trees;
  double rate;   /* the share of a tree's result that is added */
  double ridge;  /* regularisation: as if every leaf had samples of this weight with residual 0 */
  int64_t least; /* least samples on either side of a split; smaller nodes are not split */
  int within;    /* fits only how the samples of a group differ from each other; a group's mean is then arbitrary */
} wlmi_boost_options;

/* Fills options->trees trees and *base; the prediction is their sum. The same samples in the same order give the same
 * bits. WLM_ERR_INVALID_ARGUMENT where there is no sample. */
wlm_status wlmi_boost(const wlmi_boost_sample *samples, int64_t count, const wlmi_boost_options *options, double *base,
                      wlmi_tree *trees);
