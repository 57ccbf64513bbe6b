/* The blocks of many mini-batches of one graph, on the device. */
#pragma once

#include "core/synth/neighbour.h"
#include "tuner/upload.h"

typedef struct wlmi_block_set {
  int layers;
  int64_t count;                /* of blocks: batches * layers */
  wlmi_upload *uploads;         /* the block of batch b and layer l is at b * layers + l; each has its own memory */
  int64_t most_rows, most_cols; /* of any block */
  struct wlmi_block_means {
    double rows, cols, nnz;
  } means[WLM_NEIGHBOUR_LAYERS], all; /* mean sizes for each layer, and for all blocks */
} wlmi_block_set;

/* Batch b is sampled with the seed seed + b. The context must outlive the set. */
wlm_status wlmi_block_set_create(wlm_context *context, const wlmi_csr_host *graph,
                                 const wlmi_neighbour_options *options, int64_t batches, uint64_t seed,
                                 wlmi_block_set *set);
void wlmi_block_set_release(wlmi_block_set *set); /* also of a zeroed one */
