/* Neighbour sampling for mini-batches of a graph neural network, as GraphSAGE's Algorithm 2 (Hamilton, Ying, Leskovec,
 * NeurIPS 2017) and PyG's NeighborLoader do it: a batch starts at seed nodes, and every layer samples neighbours of all
 * nodes met so far. */
#pragma once

#include "core/csr/csr.h"

enum { WLMI_NEIGHBOUR_LAYERS = 8 };

typedef struct wlmi_neighbour_options {
  int64_t seed_count; /* start nodes of a batch, distinct; all nodes where the graph has fewer. At least 1 */
  int layers;         /* 1 to WLMI_NEIGHBOUR_LAYERS */
  int64_t fanouts[WLMI_NEIGHBOUR_LAYERS]; /* most edges of a row, at least 1; that of the seeds first */
} wlmi_neighbour_options;

/* blocks[0] has the seeds as rows, blocks[l + 1] has the columns of blocks[l] as rows. Row i and column j of any block
 * stand for the nodes nodes[i] and nodes[j] of the graph. A row has min(degree, fanout) edges of its node, each edge
 * at most once; all of them, in order, where the degree is not above the fanout. Values are those of the graph's edges.
 */
typedef struct wlmi_neighbour_batch {
  int layers;
  wlmi_csr_host blocks[WLMI_NEIGHBOUR_LAYERS];
  int32_t *nodes; /* node_count = columns of the last block */
  int64_t node_count;
} wlmi_neighbour_batch;

typedef struct wlmi_neighbour_sampler wlmi_neighbour_sampler;

/* A sampler keeps an array with a label for every node, so the cost of a batch depends on the batch's size only. The
 * graph must be valid and outlive the sampler. One thread at a time. WLM_ERR_INVALID_ARGUMENT where the graph is not
 * square. */
wlm_status wlmi_neighbour_create(const wlmi_csr_host *graph, wlmi_neighbour_sampler **sampler);
void wlmi_neighbour_destroy(wlmi_neighbour_sampler *sampler); /* also of NULL */

/* The same graph, options and seed give the same batch on every machine and for any number of threads.
 * WLM_ERR_INVALID_ARGUMENT names the option that is out of its range. */
wlm_status wlmi_neighbour_sample(wlmi_neighbour_sampler *sampler, const wlmi_neighbour_options *options, uint64_t seed,
                                 wlmi_neighbour_batch *batch);
void wlmi_neighbour_batch_release(wlmi_neighbour_batch *batch); /* also of a zeroed one */
