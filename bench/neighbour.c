/* The nodes of a batch are one list that only grows: a layer's rows are the nodes so far, its columns those plus the
 * newly met ones. So a node's position in the list is its label in every block, and relabelling needs one array over
 * the nodes of the graph. Edges are chosen row by row in parallel, each row with random numbers of its own; labels are
 * given afterwards in the order of the edges. */
#include "bench/neighbour.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/base/random.h"

enum { STREAM_SEEDS = 21, STREAM_LAYER = 22 }; /* layer l uses the stream STREAM_LAYER + l */

struct wlmi_neighbour_sampler {
  const wlmi_csr_host *graph;
  int32_t *labels; /* of each node; -1 = it is not in the batch */
  int32_t *nodes;  /* of each label */
  int64_t count;   /* labels given */
};

wlm_status wlmi_neighbour_create(const wlmi_csr_host *graph, wlmi_neighbour_sampler **out) {
  wlm_status status;
  *out = NULL;
  if (graph->rows != graph->cols || graph->rows > INT32_MAX)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "neighbours are sampled from a square matrix, not from %lld x %lld",
                     (long long)graph->rows, (long long)graph->cols);
  wlmi_neighbour_sampler *s = wlmi_alloc_zero(1, sizeof *s);
  if (!s) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "neighbour sampler");
  s->graph = graph;
  WLM_TRY(wlmi_alloc_array(graph->rows, sizeof *s->labels, "node labels", (void **)&s->labels));
  WLM_TRY(wlmi_alloc_array(graph->rows, sizeof *s->nodes, "nodes", (void **)&s->nodes));
  for (int64_t i = 0; i < graph->rows; i++) s->labels[i] = -1;
  *out = s;
  return WLM_OK;
done:
  wlmi_neighbour_destroy(s);
  return status;
}

void wlmi_neighbour_destroy(wlmi_neighbour_sampler *s) {
  if (!s) return;
  wlmi_free(s->labels);
  wlmi_free(s->nodes);
  wlmi_free(s);
}

/* The label of the node, which gets the next one if it has none yet. */
static int32_t label_of(wlmi_neighbour_sampler *s, int32_t node) {
  if (s->labels[node] < 0) {
    s->labels[node] = (int32_t)s->count;
    s->nodes[s->count++] = node;
  }
  return s->labels[node];
}

/* `wanted` distinct nodes by Floyd's algorithm; labels mark the nodes that are taken. */
static void choose_seeds(wlmi_neighbour_sampler *s, int64_t wanted, uint64_t seed) {
  wlmi_random random = wlmi_random_for(seed, STREAM_SEEDS, 0);
  for (int64_t last = s->graph->rows - wanted; last < s->graph->rows; last++) {
    const int64_t node = wlmi_random_below(&random, last + 1);
    label_of(s, (int32_t)(s->labels[node] < 0 ? node : last));
  }
}

/* Writes `wanted` distinct positions of 0 .. degree - 1: all in order, or some by Floyd's algorithm (Bentley, Floyd: "A
 * sample of brilliance", CACM 1987), which costs wanted^2 / 2 comparisons however long the row is. */
static void choose_edges(wlmi_random *random, int64_t degree, int64_t wanted, int32_t *positions) {
  if (wanted == degree) {
    for (int64_t i = 0; i < degree; i++) positions[i] = (int32_t)i;
    return;
  }
  for (int64_t taken = 0; taken < wanted; taken++) {
    const int64_t last = degree - wanted + taken;
    int32_t position = (int32_t)wlmi_random_below(random, last + 1);
    for (int64_t i = 0; i < taken; i++)
      if (positions[i] == position) {
        position = (int32_t)last;
        break;
      }
    positions[taken] = position;
  }
}

/* Edges of the nodes so far: first their positions in the row, then the nodes at the other end, then labels. */
static wlm_status sample_layer(wlmi_neighbour_sampler *s, int64_t fanout, uint64_t seed, int layer,
                               wlmi_csr_host *block) {
  const wlmi_csr_host *graph = s->graph;
  const int32_t *nodes = s->nodes;
  block->rows = s->count;
  WLM_CHECK(wlmi_alloc_array(block->rows + 1, sizeof *block->rowptr, "rowptr of a block", (void **)&block->rowptr));
  block->rowptr[0] = 0;
  for (int64_t row = 0; row < block->rows; row++) {
    const int64_t degree = graph->rowptr[nodes[row] + 1] - graph->rowptr[nodes[row]];
    block->rowptr[row + 1] = block->rowptr[row] + (degree < fanout ? degree : fanout);
  }
  block->nnz = block->rowptr[block->rows];
  WLM_CHECK(wlmi_alloc_array(block->nnz, sizeof *block->colind, "columns of a block", (void **)&block->colind));
  if (graph->values)
    WLM_CHECK(wlmi_alloc_array(block->nnz, sizeof *block->values, "values of a block", (void **)&block->values));
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < block->rows; row++) {
    const int64_t begin = block->rowptr[row], end = block->rowptr[row + 1], node = nodes[row];
    const int64_t first = graph->rowptr[node], degree = graph->rowptr[node + 1] - first;
    wlmi_random random = wlmi_random_for(seed, (uint64_t)(STREAM_LAYER + layer), (uint64_t)row);
    choose_edges(&random, degree, end - begin, block->colind + begin);
    for (int64_t p = begin; p < end; p++) {
      const int64_t edge = first + block->colind[p];
      block->colind[p] = graph->colind[edge];
      if (block->values) block->values[p] = graph->values[edge];
    }
  }
  for (int64_t p = 0; p < block->nnz; p++) block->colind[p] = label_of(s, block->colind[p]);
  block->cols = s->count;
  return WLM_OK;
}

static wlm_status check(const wlmi_neighbour_options *options) {
  if (options->layers < 1 || options->layers > WLMI_NEIGHBOUR_LAYERS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "layers must be 1 to %d, not %d", WLMI_NEIGHBOUR_LAYERS,
                     options->layers);
  if (options->seed_count < 1)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "seed_count must be at least 1, not %lld",
                     (long long)options->seed_count);
  for (int l = 0; l < options->layers; l++)
    if (options->fanouts[l] < 1)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "fanouts[%d] must be at least 1, not %lld", l,
                       (long long)options->fanouts[l]);
  return WLM_OK;
}

wlm_status wlmi_neighbour_sample(wlmi_neighbour_sampler *s, const wlmi_neighbour_options *options, uint64_t seed,
                                 wlmi_neighbour_batch *batch) {
  const int64_t most = s->graph->rows;
  wlm_status status;
  *batch = (wlmi_neighbour_batch){0};
  WLM_TRY(check(options));
  choose_seeds(s, options->seed_count < most ? options->seed_count : most, seed);
  for (; batch->layers < options->layers; batch->layers++)
    WLM_TRY(sample_layer(s, options->fanouts[batch->layers], seed, batch->layers, &batch->blocks[batch->layers]));
  WLM_TRY(wlmi_alloc_array(s->count, sizeof *batch->nodes, "nodes of a batch", (void **)&batch->nodes));
  memcpy(batch->nodes, s->nodes, (size_t)s->count * sizeof *batch->nodes);
  batch->node_count = s->count;
done:
  for (int64_t i = 0; i < s->count; i++) s->labels[s->nodes[i]] = -1;
  s->count = 0;
  if (status != WLM_OK) wlmi_neighbour_batch_release(batch);
  return status;
}

void wlmi_neighbour_batch_release(wlmi_neighbour_batch *batch) {
  for (int l = 0; l < WLMI_NEIGHBOUR_LAYERS; l++) wlmi_csr_host_release(&batch->blocks[l]);
  wlmi_free(batch->nodes);
  *batch = (wlmi_neighbour_batch){0};
}
