#include "runtime/host/builtin.h"

#include <stdio.h>

#include "templates/prelude/args.h"

enum { ROWS_PER_BLOCK = 64, TILE = 64 };

static int64_t row_begin(const struct wlm_args *args, int wide, int64_t row) {
  return wide ? ((const int64_t *)args->rowptr)[row] : ((const int32_t *)args->rowptr)[row];
}

static void one_row(const struct wlm_args *args, int wide, int64_t row) {
  const int64_t begin = row_begin(args, wide, row), end = row_begin(args, wide, row + 1);
  const int32_t *colind = args->colind;
  const float *values = args->values;
  for (int64_t column = 0; column < args->n; column += TILE) {
    const int64_t width = args->n - column < TILE ? args->n - column : TILE;
    float acc[TILE] = {0};
    for (int64_t p = begin; p < end; p++) {
      const float a = values ? values[p] : 1.0f;
      const float *b = (const float *)args->b + colind[p] * args->ldb + column;
      for (int64_t j = 0; j < width; j++) acc[j] += a * b[j];
    }
    float *c = (float *)args->c + row * args->ldc + column;
    for (int64_t j = 0; j < width; j++) {
      float value = (float)args->alpha * acc[j];
      c[j] = args->beta != 0 ? value + (float)args->beta * c[j] : value;
    }
  }
}

static void one_block(const struct wlm_args *args, int wide, int64_t block) {
  for (int64_t row = block * ROWS_PER_BLOCK; row < (block + 1) * ROWS_PER_BLOCK && row < args->rows; row++)
    one_row(args, wide, row);
}

/* With one thread OpenMP is not used (templates/prelude/host.h gives the reason). */
static void all_blocks(const struct wlm_args *args, int wide, int64_t blocks, int threads) {
  if (threads > 1) {
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t block = 0; block < blocks; block++) one_block(args, wide, block);
  } else {
    for (int64_t block = 0; block < blocks; block++) one_block(args, wide, block);
  }
}

static void sum_i32(const struct wlm_args *args, long long blocks, int threads) {
  all_blocks(args, 0, blocks, threads);
}
static void sum_i64(const struct wlm_args *args, long long blocks, int threads) {
  all_blocks(args, 1, blocks, threads);
}

wlm_status wlmi_host_builtin(const wlmi_spec *spec, wlmi_program *program, void **kernel) {
  const wlm_problem *p = &spec->problem;
  if (p->message != WLM_MUL || p->reduce != WLM_SUM || p->sampling.sample != WLM_SAMPLE_NONE ||
      p->dense_type != WLM_F32 || spec->colind_type != WLM_I32)
    return wlmi_fail(WLM_ERR_NO_COMPILER,
                     "without a compiler only an unsampled mul.sum in f32 with colind of i32 can run; this is %s.%s in "
                     "%s with %s%s",
                     wlmi_message_name(p->message), wlmi_reduce_name(p->reduce), wlmi_type_name(p->dense_type),
                     wlmi_index_name(spec->colind_type), p->sampling.sample == WLM_SAMPLE_NONE ? "" : ", sampled");
  *program =
      (wlmi_program){.variant = "host_builtin", .pass_count = 1, .deterministic = 1, .uses_b = 1, .split = "none"};
  program->passes[0] = (wlmi_pass){.kernel = "sum", .units = WLMI_UNITS_ROWS, .units_per_block = ROWS_PER_BLOCK};
  *kernel = spec->rowptr_type == WLM_I64 ? (void *)sum_i64 : (void *)sum_i32;
  return WLM_OK;
}
