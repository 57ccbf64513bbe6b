/* The neighbour sampler: every batch has the properties that its header promises, checked edge by edge. */
#include <omp.h>

#include "bench/neighbour.h"
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/meter.h"
#include "support/test.h"

static const wlmi_neighbour_options usual = {100, 3, {15, 10, 5}};

static wlmi_neighbour_sampler *sampler_of(const wlmi_csr_host *graph) {
  GET(wlmi_neighbour_sampler *, sampler, wlmi_neighbour_create(graph, &sampler));
  return sampler;
}

static void drop_wlmi_neighbour_sampler(wlmi_neighbour_sampler **sampler) { wlmi_neighbour_destroy(*sampler); }

static wlmi_neighbour_batch batch_of(wlmi_neighbour_sampler *sampler, const wlmi_neighbour_options *options,
                                     uint64_t seed) {
  GET(wlmi_neighbour_batch, batch, wlmi_neighbour_sample(sampler, options, seed, &batch));
  return batch;
}

static int64_t degree_of(const wlmi_csr_host *graph, int64_t node) {
  return graph->rowptr[node + 1] - graph->rowptr[node];
}

/* The position of an edge in the graph, whose rows are sorted by column; -1 if there is none. */
static int64_t edge_of(const wlmi_csr_host *graph, int64_t from, int64_t to) {
  for (int64_t p = graph->rowptr[from]; p < graph->rowptr[from + 1]; p++)
    if (graph->colind[p] == to) return p;
  return -1;
}

/* Checks that columns of a block are numbered in the order in which they first occur in its edges. */
static void check_block(const wlmi_csr_host *graph, const wlmi_neighbour_batch *batch, int layer, int64_t fanout) {
  const wlmi_csr_host *block = &batch->blocks[layer];
  int64_t labels = block->rows;
  assert_csr(block);
  assert_int_equal(!block->values, !graph->values);
  for (int64_t row = 0; row < block->rows; row++) {
    const int64_t node = batch->nodes[row], degree = degree_of(graph, node);
    assert_int_equal(degree_of(block, row), degree < fanout ? degree : fanout);
    for (int64_t p = block->rowptr[row]; p < block->rowptr[row + 1]; p++) {
      const int32_t column = block->colind[p];
      const int64_t edge = edge_of(graph, node, batch->nodes[column]);
      assert_true(column <= labels);
      labels += column == labels;
      if (edge < 0) fail_msg("row %lld has an edge that the graph lacks", (long long)row);
      if (block->values) assert_true(block->values[p] == graph->values[edge]);
      if (degree <= fanout) assert_int_equal(edge - graph->rowptr[node], p - block->rowptr[row]);
      for (int64_t q = block->rowptr[row]; q < p; q++) assert_int_not_equal(block->colind[q], column);
    }
  }
  assert_int_equal(block->cols, labels);
}

static void check_batch(const wlmi_csr_host *graph, const wlmi_neighbour_batch *batch,
                        const wlmi_neighbour_options *options) {
  FREED char *seen = calloc((size_t)graph->rows + 1, 1);
  assert_non_null(seen);
  assert_int_equal(batch->layers, options->layers);
  assert_int_equal(batch->blocks[0].rows, options->seed_count < graph->rows ? options->seed_count : graph->rows);
  for (int layer = 0; layer < batch->layers; layer++) {
    if (layer) assert_int_equal(batch->blocks[layer].rows, batch->blocks[layer - 1].cols);
    check_block(graph, batch, layer, options->fanouts[layer]);
  }
  assert_int_equal(batch->blocks[batch->layers - 1].cols, batch->node_count);
  for (int64_t i = 0; i < batch->node_count; i++) {
    assert_in_range(batch->nodes[i], 0, graph->rows - 1);
    assert_false(seen[batch->nodes[i]]++);
  }
}

TEST(batches_are_sampled_from_the_graph) {
  static const char *const inputs[] = {"twin:arxiv,scale=0.02", "uniform:rows=3000,d=4", "uniform:rows=60,d=30",
                                       "synth:rows=2000,d=3,cv=2"}; /* the last one has isolated nodes */
  static const wlmi_neighbour_options all[] = {
      usual, {1, 1, {1}}, {1024, 2, {3, 2}}, {7, WLMI_NEIGHBOUR_LAYERS, {1, 2, 1, 1, 3, 1, 1, 2}}, {50, 1, {1000000}}};
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    HOLD(wlmi_csr_host, graph, wlmi_input_read(inputs[i], &graph));
    OWNED(wlmi_neighbour_sampler) *sampler = sampler_of(&graph);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
      HELD(wlmi_neighbour_batch) batch = batch_of(sampler, &all[k], k);
      check_batch(&graph, &batch, &all[k]);
    }
  }
}

static int same_block(const wlmi_csr_host *a, const wlmi_csr_host *b) {
  wlmi_hash first, second;
  first = csr_hash(a);
  second = csr_hash(b);
  return !memcmp(&first, &second, sizeof first);
}

static int same_batch(const wlmi_neighbour_batch *a, const wlmi_neighbour_batch *b) {
  int same = a->node_count == b->node_count;
  if (same) same = !memcmp(a->nodes, b->nodes, (size_t)a->node_count * sizeof *a->nodes);
  for (int layer = 0; layer < a->layers; layer++) same = same && same_block(&a->blocks[layer], &b->blocks[layer]);
  return same;
}

TEST(seed_decides) {
  HOLD(wlmi_csr_host, graph, wlmi_input_read("twin:arxiv,scale=0.02", &graph));
  OWNED(wlmi_neighbour_sampler) *one = sampler_of(&graph), *other = sampler_of(&graph);
  const int threads = omp_get_max_threads();
  HELD(wlmi_neighbour_batch) first = batch_of(one, &usual, 1), second = batch_of(one, &usual, 2);
  omp_set_num_threads(threads > 1 ? 1 : 3);
  HELD(wlmi_neighbour_batch) again = batch_of(other, &usual, 1); /* by another sampler with another number of threads */
  omp_set_num_threads(threads);
  assert_true(same_batch(&first, &again));
  assert_false(same_batch(&first, &second));
  assert_memory_not_equal(first.nodes, second.nodes, 100 * sizeof *first.nodes); /* another batch has other seeds */
}

/* Every neighbour of a long row is chosen with equal probability. */
TEST(edges_are_chosen_evenly) {
  enum { NODES = 40, DEGREE = 20, FANOUT = 5, BATCHES = 4000 };
  static const wlmi_neighbour_options options = {NODES, 1, {FANOUT}};
  int64_t counts[NODES * DEGREE] = {0};
  HOLD(wlmi_csr_host, graph, wlmi_input_read("uniform:rows=40,d=20", &graph));
  OWNED(wlmi_neighbour_sampler) *sampler = sampler_of(&graph);
  for (uint64_t seed = 0; seed < BATCHES; seed++) {
    HELD(wlmi_neighbour_batch) batch = batch_of(sampler, &options, seed);
    for (int64_t row = 0; row < NODES; row++)
      for (int64_t p = row * FANOUT; p < (row + 1) * FANOUT; p++)
        counts[edge_of(&graph, batch.nodes[row], batch.nodes[batch.blocks[0].colind[p]])]++;
  }
  /* A binomial with p = 1/4 has mean 1000 and standard deviation 27; the bounds are six standard deviations. */
  for (int edge = 0; edge < NODES * DEGREE; edge++) assert_in_range(counts[edge], 836, 1164);
}

TEST(small_graphs) {
  static int64_t none[] = {0, 0, 0, 0}, loop[] = {0, 1};
  static int32_t self[] = {0};
  const wlmi_csr_host graphs[] = {
      {.rows = 1, .cols = 1, .rowptr = none},                           /* one node, no edge */
      {.rows = 1, .cols = 1, .nnz = 1, .rowptr = loop, .colind = self}, /* one node, an edge to itself */
      {.rows = 3, .cols = 3, .rowptr = none},                           /* isolated nodes only */
      {.rows = 0, .cols = 0, .rowptr = none},                           /* nothing at all */
  };
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    OWNED(wlmi_neighbour_sampler) *sampler = sampler_of(&graphs[i]);
    HELD(wlmi_neighbour_batch) batch = batch_of(sampler, &usual, 1);
    check_batch(&graphs[i], &batch, &usual);
    assert_int_equal(batch.node_count, graphs[i].rows);
    assert_int_equal(batch.blocks[2].nnz, graphs[i].nnz);
  }
}

TEST(refuses) {
  static const struct {
    wlmi_neighbour_options options;
    const char *named;
  } wrong[] = {{{0, 1, {5}}, "seed_count"},
               {{1, 0, {5}}, "layers"},
               {{1, WLMI_NEIGHBOUR_LAYERS + 1, {5}}, "layers"},
               {{1, 2, {5, 0}}, "fanouts[1]"}};
  const wlmi_csr_host oblong = {.rows = 3, .cols = 4};
  OWNED(wlmi_neighbour_sampler) *sampler = NULL;
  wlmi_neighbour_batch batch;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_neighbour_create(&oblong, &sampler));
  assert_null(sampler);
  assert_contains(wlm_error_detail(), "3 x 4");
  HOLD(wlmi_csr_host, graph, wlmi_input_read("uniform:rows=50,d=3", &graph));
  sampler = sampler_of(&graph);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_neighbour_sample(sampler, &wrong[i].options, 1, &batch));
    assert_contains(wlm_error_detail(), wrong[i].named);
  }
}

/* ---- allocation failures ---------------------------------------------------------------------------- */

/* A batch that failed leaves nothing behind; the next one is complete. */
TEST(survives_without_memory) {
  wlmi_neighbour_batch batch;
  wlm_status status = WLM_ERR_OUT_OF_MEMORY;
  int failures = 0;
  HOLD(wlmi_csr_host, graph, wlmi_input_read("uniform:rows=500,d=6", &graph));
  OWNED(wlmi_neighbour_sampler) *sampler = sampler_of(&graph);
  wlmi_neighbour_batch expected = batch_of(sampler, &usual, 3);
  for (int64_t room = 0; status != WLM_OK; room++) {
    meter m = {.fail_at = room};
    meter_begin(&m);
    status = wlmi_neighbour_sample(sampler, &usual, 3, &batch);
    wlm_set_allocator(NULL);
    if (status == WLM_OK) break;
    assert_int_equal(status, WLM_ERR_OUT_OF_MEMORY);
    failures++;
  }
  assert_true(failures >= 10); /* three arrays for each of three blocks, and the nodes */
  assert_true(same_batch(&batch, &expected));
  wlmi_neighbour_batch_release(&batch);
  wlmi_neighbour_batch_release(&expected);
}
