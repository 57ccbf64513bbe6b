/* Gradient boosting for squared error (Friedman 2001) over histograms: each feature's values are sorted into at most
 * BINS bins once. The best split of a node is then found by summing its samples' residuals for each bin and walking
 * over the bins. Trees grow level by level, with one pass over the samples for all nodes of a level. All have the same
 * depth; a node that cannot be split sends everything to the left. Each tree is fitted to the residuals of those before
 * it and adds only a part of its result (`rate`), which avoids overfitting. `within` takes each group's mean out of the
 * residuals before each tree. Threads divide the features, so each sum is computed by one thread in the order of the
 * samples and does not depend on the number of threads. */
#include "tuner/boost.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/memory.h"

enum { BINS = 64, LEVEL_NODES = 1 << (WLMI_TREE_DEPTH - 1) };

typedef struct cell {
  double sum, weight; /* of weighted residuals */
  int64_t count;
} cell;

typedef struct learner {
  const wlmi_boost_sample *samples;
  int64_t count;
  const wlmi_boost_options *options;
  int edge_count[WLMI_FEATURES];
  float edges[WLMI_FEATURES][BINS]; /* a value's bin is the number of edges below it */
  unsigned char *bins;              /* of each sample, feature after feature */
  double *residuals;
  int *nodes; /* each sample's node in the growing tree */
  cell cells[LEVEL_NODES][WLMI_FEATURES][BINS];
} learner;

static int compare_floats(const void *left, const void *right) {
  const float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

/* Edges lie half-way between neighbouring values; if there are too many, evenly spaced ones are kept. */
static void find_edges(learner *l, int feature, float *values) {
  int64_t distinct = 0;
  for (int64_t i = 0; i < l->count; i++) values[i] = l->samples[i].features[feature];
  qsort(values, (size_t)l->count, sizeof *values, compare_floats);
  for (int64_t i = 0; i < l->count; i++)
    if (!distinct || values[i] > values[distinct - 1]) values[distinct++] = values[i];
  const int64_t gaps = distinct - 1, most = BINS - 1;
  int *edges = &l->edge_count[feature];
  for (int64_t i = 0; i < gaps; i++) {
    if (gaps > most && i * most / gaps == (i + 1) * most / gaps) continue;
    l->edges[feature][(*edges)++] = values[i] + (values[i + 1] - values[i]) / 2;
  }
}

static void sort_into_bins(learner *l) {
#pragma omp parallel for schedule(dynamic)
  for (int f = 0; f < WLMI_FEATURES; f++)
    for (int64_t i = 0; i < l->count; i++) {
      int bin = 0;
      while (bin < l->edge_count[f] && l->samples[i].features[f] > l->edges[f][bin]) bin++;
      l->bins[f * l->count + i] = (unsigned char)bin;
    }
}

static double score(double sum, double weight, double ridge) { return sum * sum / (weight + ridge); }

static void add(cell *to, const cell *from) {
  to->sum += from->sum;
  to->weight += from->weight;
  to->count += from->count;
}

/* Finds the split of one node that reduces the error most; changes nothing if no split does. */
static void split(const learner *l, cell (*node)[BINS], unsigned char *feature, float *threshold) {
  const wlmi_boost_options *o = l->options;
  double best = 1e-12;
  cell total = {0, 0, 0};
  for (int bin = 0; bin < BINS; bin++) add(&total, &node[0][bin]);
  for (int f = 0; f < WLMI_FEATURES; f++) {
    cell left = {0, 0, 0};
    for (int edge = 0; edge < l->edge_count[f]; edge++) {
      add(&left, &node[f][edge]);
      if (left.count < o->least || total.count - left.count < o->least) continue;
      const double gain = score(left.sum, left.weight, o->ridge) +
                          score(total.sum - left.sum, total.weight - left.weight, o->ridge) -
                          score(total.sum, total.weight, o->ridge);
      if (gain <= best) continue;
      best = gain;
      *feature = (unsigned char)f;
      *threshold = l->edges[f][edge];
    }
  }
}

static void add_up_level(learner *l, int first) {
#pragma omp parallel for schedule(dynamic)
  for (int f = 0; f < WLMI_FEATURES; f++) {
    const unsigned char *bins = l->bins + f * l->count;
    for (int node = 0; node < LEVEL_NODES; node++)
      for (int bin = 0; bin < BINS; bin++) l->cells[node][f][bin] = (cell){0, 0, 0};
    for (int64_t i = 0; i < l->count; i++) {
      const double weight = (double)l->samples[i].weight;
      const cell one = {weight * l->residuals[i], weight, 1};
      add(&l->cells[l->nodes[i] - first][f][bins[i]], &one);
    }
  }
}

static void fill_leaves(learner *l, wlmi_tree *tree) {
  cell leaves[WLMI_TREE_LEAVES] = {{0, 0, 0}};
  for (int64_t i = 0; i < l->count; i++) {
    cell *leaf = &leaves[l->nodes[i] - WLMI_TREE_NODES];
    const double weight = (double)l->samples[i].weight;
    add(leaf, &(cell){weight * l->residuals[i], weight, 1});
  }
  for (int i = 0; i < WLMI_TREE_LEAVES; i++)
    tree->leaf[i] = (float)(l->options->rate * leaves[i].sum / (leaves[i].weight + l->options->ridge + 1e-9));
  for (int64_t i = 0; i < l->count; i++) l->residuals[i] -= (double)tree->leaf[l->nodes[i] - WLMI_TREE_NODES];
}

static void take_means_out(learner *l) {
  const wlmi_boost_sample *samples = l->samples;
  for (int64_t begin = 0, end; begin < l->count; begin = end) {
    double sum = 0, weights = 0;
    for (end = begin; end < l->count && samples[end].group == samples[begin].group; end++) {
      sum += (double)samples[end].weight * l->residuals[end];
      weights += (double)samples[end].weight;
    }
    for (int64_t i = begin; i < end; i++) l->residuals[i] -= sum / weights;
  }
}

static void grow(learner *l, wlmi_tree *tree) {
  if (l->options->within) take_means_out(l);
  for (int64_t i = 0; i < l->count; i++) l->nodes[i] = 0;
  for (int first = 0; first < WLMI_TREE_NODES; first = 2 * first + 1) {
    add_up_level(l, first);
    for (int node = first; node <= 2 * first; node++) {
      tree->feature[node] = 0;
      tree->threshold[node] = INFINITY;
      split(l, l->cells[node - first], &tree->feature[node], &tree->threshold[node]);
    }
    for (int64_t i = 0; i < l->count; i++) {
      const int node = l->nodes[i];
      l->nodes[i] = 2 * node + 1 + (l->samples[i].features[tree->feature[node]] > tree->threshold[node]);
    }
  }
  fill_leaves(l, tree);
}

wlm_status wlmi_boost(const wlmi_boost_sample *samples, int64_t count, const wlmi_boost_options *options, double *base,
                      wlmi_tree *trees) {
  static const char what[] = "training a model";
  wlm_status status;
  float *values = NULL;
  if (count < 1) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "a model cannot be trained on nothing");
  learner *l = wlmi_alloc_zero(1, sizeof *l);
  if (!l) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, what);
  l->samples = samples;
  l->count = count;
  l->options = options;
  WLM_TRY(wlmi_alloc_array(count, sizeof *values, what, (void **)&values));
  WLM_TRY(wlmi_alloc_array(count, WLMI_FEATURES, what, (void **)&l->bins));
  WLM_TRY(wlmi_alloc_array(count, sizeof *l->residuals, what, (void **)&l->residuals));
  WLM_TRY(wlmi_alloc_array(count, sizeof *l->nodes, what, (void **)&l->nodes));
  for (int f = 0; f < WLMI_FEATURES; f++) find_edges(l, f, values);
  sort_into_bins(l);
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < count; i++) {
    sum += (double)samples[i].weight * (double)samples[i].target;
    weights += (double)samples[i].weight;
  }
  *base = sum / weights;
  for (int64_t i = 0; i < count; i++) l->residuals[i] = (double)samples[i].target - *base;
  for (int i = 0; i < options->trees; i++) grow(l, &trees[i]);
done:
  wlmi_free(values);
  wlmi_free(l->bins);
  wlmi_free(l->residuals);
  wlmi_free(l->nodes);
  wlmi_free(l);
  return status;
}
