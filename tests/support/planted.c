#include "support/planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/problem/spec_key.h"
#include "select/features.h"
#include "support/asserts.h"
#include "support/emit_fixture.h"
#include "support/own.h"
#include "tuner/train.h"

enum { MOST = 40000 };

const char planted_key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";
const wlmi_limits planted_limits = {.target = WLMI_TARGET_CUDA,
                                    .arch = 90,
                                    .threads_per_block = 1024,
                                    .shared_bytes = 232448,
                                    .processors = 132,
                                    .l2_bytes = 50 << 20};
const int64_t planted_widths[PLANTED_WIDTHS] = {32, 64};

uint64_t planted_seed;

double planted_between(double low, double high) {
  return low + (high - low) * (double)(wlmi_mix(planted_seed += WLMI_GOLDEN) >> 11) / 9007199254740992.0;
}

wlm_stats planted_matrix(void) {
  wlm_stats s = WLM_STATS_INIT;
  s.rows = s.cols = (int64_t)exp2(planted_between(12, 17));
  s.nnz = (int64_t)((double)s.rows * exp2(planted_between(1, 6)));
  s.mean = (double)s.nnz / (double)s.rows;
  s.cv = exp2(planted_between(-3, 3));
  s.longest = (int64_t)(s.mean * (1 + 4 * s.cv));
  s.rows_le_4 = s.rows / 4;
  s.rows_le_16 = s.rows / 2;
  s.fingerprint[0] = (uint64_t)planted_between(0, 1e15);
  s.fingerprint[1] = (uint64_t)planted_between(0, 1e15);
  return s;
}

static int number_of(const char *variant, const char *name) {
  const char *at = strstr(variant, name);
  return at ? atoi(at + strlen(name)) : 0;
}

double planted_time(const wlm_stats *s, int64_t n, const char *variant) {
  const double lanes = fabs(log2((double)(4 * number_of(variant, "lanes=")) / (double)n));
  if (!strncmp(variant, "merge_path", 10)) {
    const double blocks = (double)(s->rows + s->nnz) / number_of(variant, "items=") / emit_cuda.processors;
    const double prepared = number_of(variant, "prepared=") ? -0.2 : 0;
    return 1.5 + 0.3 * fabs(log2(blocks / 4)) + 0.3 * lanes + prepared;
  }
  if (!strncmp(variant, "row_vec", 7)) return (s->cv < 0.7 ? 1.2 : 4) + 0.3 * lanes;
  return 6;
}

const wlmi_candidate_list *planted_candidates_for(const char *problem, int64_t n) {
  GET(wlmi_spec, spec, wlmi_spec_from_key(problem, n, &spec));
  GET(const wlmi_candidate_list *, list, wlmi_generator_describe(emit_generator, &spec, &emit_cuda, &list));
  return list;
}

const wlmi_candidate_list *planted_candidates(int64_t n) { return planted_candidates_for(planted_key, n); }

planted_world planted_world_make(int count) {
  planted_world w = {.records = calloc(MOST, sizeof *w.records), .names = calloc(MOST, sizeof *w.names)};
  planted_seed = 1;
  for (int m = 0; m < count; m++) {
    w.matrices[m] = planted_matrix();
    for (int k = 0; k < PLANTED_WIDTHS; k++) {
      const wlmi_candidate_list *list = planted_candidates(planted_widths[k]);
      for (int64_t i = 0; i < list->count; i++) {
        const char *variant = list->candidates[i].variant;
        if (!strncmp(variant, "row_block", 9)) continue;
        const double seconds = wlmi_simple_seconds(&planted_limits, &w.matrices[m], planted_widths[k]) *
                               planted_time(&w.matrices[m], planted_widths[k], variant) * planted_between(0.98, 1.02);
        assert_true(w.count < MOST);
        memcpy(w.names[w.count], variant, WLMI_VARIANT_NAME);
        w.records[w.count] =
            (wlmi_measurement_record){.stats = w.matrices[m],
                                      .variant = w.names[w.count],
                                      .problem = (char *)planted_key,
                                      .n = planted_widths[k],
                                      .time_ps = (int64_t)(seconds * 1e12),
                                      .prepare_ps = list->candidates[i].prepares ? (int64_t)(seconds * 2e12) : 0,
                                      .made_at = 1};
        w.count++;
      }
      wlmi_candidates_drop(list);
    }
  }
  return w;
}

void planted_world_end(planted_world *w) {
  free(w->records);
  free(w->names);
}

wlmi_model planted_train(int matrices) {
  planted_world w = planted_world_make(matrices);
  wlmi_model model = {0};
  HOLD(wlmi_models, models, wlmi_models_train(emit_generator, &planted_limits, w.records, w.count, &models));
  assert_int_equal(models.count, matrices >= WLMI_TRAIN_MATRICES);
  if (models.count) {
    model = models.models[0];
    models.count = 0;
  }
  planted_world_end(&w);
  return model;
}

static wlmi_model trained;

wlmi_model *planted_learned(void) {
  static uint64_t seed_after;
  if (!trained.tree_count) {
    trained = planted_train(PLANTED_MATRICES);
    seed_after = planted_seed;
  }
  planted_seed = seed_after;
  return &trained;
}

int planted_end(void **state) {
  wlmi_model_release(&trained);
  return emit_end(state);
}
