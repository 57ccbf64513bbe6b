/* Learns a number from features: least squares boosting of small complete trees (select/model.h). */
#ifndef WLM_TUNER_BOOST_H
#define WLM_TUNER_BOOST_H

#include "select/model.h"

typedef struct wlmi_boost_sample {
  float features[WLM_FEATURES]; /* finite */
  float target;
  float weight; /* above 0: what its error counts */
} wlmi_boost_sample;

typedef struct wlmi_boost_options {
  int trees;
  double rate;   /* what a tree adds of what it found */
  double ridge;  /* as if samples of so much weight with nothing to explain stood in every leaf */
  int64_t least; /* samples of a node that is not split any more, and of either side of a split */
} wlmi_boost_options;

/* Fills options->trees trees and *base; the prediction is their sum. The same samples in the same order give the same
 * bits. WLM_ERR_INVALID_ARGUMENT where there is no sample. */
wlm_status wlmi_boost(const wlmi_boost_sample *samples, int64_t count, const wlmi_boost_options *options, double *base,
                      wlmi_tree *trees);

#endif
