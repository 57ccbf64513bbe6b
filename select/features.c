/* Which kernel wins depends on a few ratios: how many blocks a multiprocessor gets, whether they are balanced, how much
 * longer the largest block works than the others, how often A is read. All of them are computed from the launch, so
 * this file has no code for single families: a new family needs nothing here, and the parameters `lanes` and `batch`
 * are found by name. Features are logarithms, because a factor of two means the same at any size. */
#include "select/features.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem/spec_key.h"

static const double most_waves = 4;
enum { THREADS_PER_PROCESSOR = 1024 }; /* threads with 64 registers each, for launches that state no wave */

static double log2_above(double value, double least) { return log2(value > least ? value : least); }

static double clean(double value) { return isfinite(value) ? value : 0; }

static double mean_of(const wlm_stats *s) { return s->rows > 0 ? (double)s->nnz / (double)s->rows : 0; }

static double work_of(const wlm_stats *s) { return (double)s->rows + (double)s->nnz; }

static double processors_of(const wlmi_limits *limits) { return limits->processors > 0 ? limits->processors : 1; }

void wlmi_features_of_case(const wlmi_limits *limits, const wlm_stats *s, int64_t n, int has_values,
                           float features[WLMI_FEATURES]) {
  const double l2 = limits->l2_bytes > 0 ? (double)limits->l2_bytes : 1 << 20;
  const double nnz = (double)s->nnz, width = (double)n;
  const double share = nnz / processors_of(limits);
  features[WLMI_FEATURE_WORK] = (float)log2_above(work_of(s), 1);
  features[WLMI_FEATURE_MEAN] = (float)log2(mean_of(s) + 0.1);
  features[WLMI_FEATURE_CV] = (float)log2(clean(s->cv) + 0.25);
  features[WLMI_FEATURE_IMBALANCE] = (float)log2(1 + (share > 0 ? (double)s->longest / share : 0));
  features[WLMI_FEATURE_SHORT] = (float)(s->rows > 0 ? (double)s->rows_le_4 / (double)s->rows : 0);
  features[WLMI_FEATURE_N] = (float)log2_above(width, 1);
  features[WLMI_FEATURE_B_IN_L2] = (float)log2_above((double)s->cols * width * sizeof(float) / l2, 1e-9);
  features[WLMI_FEATURE_GATHERED] = (float)log2_above(nnz * width, 1);
  features[WLMI_FEATURE_VALUES] = has_values ? 1 : 0;
}

/* Blocks that a multiprocessor holds at once. */
static double resident_of(const wlmi_pass *pass, double threads) {
  if (pass->wave && pass->processors) return (double)pass->wave / (double)pass->processors;
  return pass->threads ? fmax(1, THREADS_PER_PROCESSOR / threads) : 1;
}

/* rows + non-zeros of the largest block. Only blocks of whole rows can differ in size. */
static double largest_share(const wlmi_pass *pass, const wlm_stats *s, double share) {
  if (pass->units != WLMI_UNITS_ROWS) return share;
  return fmax(share, fmin(work_of(s), (double)s->longest + (double)pass->units_per_block));
}

/* If rows are kept whole, the longest row decides; otherwise the groups of a block share its work. */
static double longest_walk(const wlmi_candidate *candidate, const wlm_stats *s, double largest, double threads) {
  if (candidate->whole_rows) return 1 + (double)s->longest;
  return fmax(1, candidate->lanes > 0 ? largest * candidate->lanes / threads : largest);
}

void wlmi_features_of_candidate(const wlmi_limits *limits, const wlm_stats *s, int64_t n,
                                const wlmi_candidate *candidate, int family, float features[WLMI_FEATURES]) {
  const wlmi_pass *pass = &candidate->pass;
  const double columns = n > 0 ? (double)n : 1, threads = pass->threads > 0 ? pass->threads : 1;
  const double width = pass->columns_per_block ? fmin((double)pass->columns_per_block, 2 * columns) : columns;
  const double walks = fmax(1, (double)wlmi_pass_column_blocks(pass, n));
  const wlmi_extent op_a = {s->rows, s->cols, s->nnz, n}, a = {s->cols, s->rows, s->nnz, n};
  const double unit_blocks = fmax(1, (double)wlmi_pass_unit_blocks(pass, candidate->walks_a ? &a : &op_a, 1));
  const double blocks = unit_blocks * walks / processors_of(limits);
  const double share = fmax(1, work_of(s)) / unit_blocks, largest = fmax(share, largest_share(pass, s, share));
  features[WLMI_FEATURE_FAMILY] = (float)family;
  features[WLMI_FEATURE_WIDTH] = (float)log2(width / columns);
  features[WLMI_FEATURE_LANES] = (float)log2(abs(candidate->lanes) + 0.5);
  features[WLMI_FEATURE_BATCH] = (float)candidate->batch;
  features[WLMI_FEATURE_THREADS] = (float)log2(threads);
  features[WLMI_FEATURE_UNITS] = (float)log2((double)pass->units_per_block);
  features[WLMI_FEATURE_BLOCKS] = (float)log2(blocks);
  features[WLMI_FEATURE_WAVES] = (float)fmin(most_waves, blocks / resident_of(pass, threads));
  features[WLMI_FEATURE_SHARE] = (float)log2(share);
  features[WLMI_FEATURE_UNEVEN] = (float)log2(largest / share);
  features[WLMI_FEATURE_CRITICAL] = (float)log2(largest * width / threads);
  const double serial = longest_walk(candidate, s, largest, threads);
  features[WLMI_FEATURE_SERIAL] = (float)log2(serial);
  features[WLMI_FEATURE_STEPS] = (float)log2(serial / fmax(1, candidate->batch));
  features[WLMI_FEATURE_SPANS] = (float)log2(1 + (pass->units == WLMI_UNITS_ROWS ? 0 : (double)s->longest / share));
  features[WLMI_FEATURE_FILLED] = (float)log2(blocks / resident_of(pass, threads));
  features[WLMI_FEATURE_WALKS] = (float)walks;
  features[WLMI_FEATURE_PREPARED] = candidate->prepares ? 1 : 0;
}

/* A rough estimate, which only has to remove the scale from the times: seconds for launching, and bytes per second for
 * memory that is read once and for rows of B that are gathered. */
double wlmi_simple_seconds(const wlmi_limits *limits, const wlm_stats *s, int64_t n) {
  static const struct {
    double begin, moved, gathered;
  } rates[] = {[WLMI_TARGET_CUDA] = {2e-6, 4e12, 15e12}, [WLMI_TARGET_HOST] = {5e-6, 10e9, 20e9}};
  const double element = sizeof(float), nnz = (double)s->nnz, columns = (double)n;
  const double moved = nnz * 2 * element + element * columns * ((double)s->rows + (double)s->cols);
  return rates[limits->target].begin + moved / rates[limits->target].moved +
         nnz * columns * element / rates[limits->target].gathered;
}

wlmi_point wlmi_point_of(const wlm_stats *s, int64_t n) {
  static const double cv_class = 1.6; /* one CV class in octaves */
  return (wlmi_point){{(float)(log2_above((double)s->rows, 1) / 2), (float)log2_above(mean_of(s), 1.0 / 16),
                       (float)(log2(clean(s->cv) + 0.25) / cv_class), (float)log2_above((double)n, 1)}};
}

double wlmi_point_distance(const wlmi_point *a, const wlmi_point *b) {
  double sum = 0;
  for (int i = 0; i < WLMI_PLACE_AXES; i++) sum += (double)((a->at[i] - b->at[i]) * (a->at[i] - b->at[i]));
  return sqrt(sum);
}

void wlmi_problem_class(const char *key, char out[WLMI_PROBLEM_CLASS]) {
  const char *types = wlmi_key_types(key), *values = types ? strstr(types, ",values=") : NULL;
  const char *rest = values ? strchr(values + 1, ',') : NULL;
  *out = 0;
  if (rest) snprintf(out, WLMI_PROBLEM_CLASS, "%.*s%s", (int)(values - types - 1), types + 1, rest);
}

int wlmi_problem_has_values(const char *key) { return !strstr(key, ",values=none"); }

int wlmi_ranks_as_product(const wlmi_spec *spec) {
  const wlm_operation operation = spec->problem.operation;
  return operation == WLM_SPMM || (operation == WLM_MESSAGE && !spec->has_edge_lines);
}

void wlmi_model_class(const char *key, int64_t n, int has_edge_lines, char out[WLMI_PROBLEM_CLASS]) {
  static const char operation[] = ",operation=message";
  wlmi_problem_class(key, out);
  char *message = has_edge_lines ? NULL : strstr(out, operation);
  if (message) {
    const char *rest = message + sizeof operation - 1;
    memmove(message, rest, strlen(rest) + 1);
  }
  if (!*out || n > WLMI_NARROW || strstr(out, ",operation=")) return;
  const size_t length = strlen(out);
  snprintf(out + length, WLMI_PROBLEM_CLASS - length, ",narrow=1");
}

wlm_status wlmi_model_class_of_key(const char *key, int64_t n, char out[WLMI_PROBLEM_CLASS]) {
  wlmi_spec spec;
  const wlm_status status = wlmi_spec_from_key(key, n, &spec);
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  wlmi_model_class(key, n, status != WLM_OK || spec.has_edge_lines, out);
  return WLM_OK;
}
