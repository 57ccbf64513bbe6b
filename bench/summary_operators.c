/* Suite "operators" in short: each line as a row of the table, then the figures that have targets. A figure "over our
 * own sum" is our time over that of the f32 sum of the same round; a figure over a baseline is the baseline's time over
 * ours. */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

typedef struct op_case {
  wlmi_core_case core;
  char op[WLM_CASE_NAME], type[WLM_CASE_NAME];
  double cols, sum_us;
} op_case;

static int any(const op_case *c) { return c->core.n > 0; }

/* Cases in which B in f32 does not fit the cache, so halving its bytes should help. */
static int is_large(const op_case *c) { return c->core.n >= 64 && c->cols * c->core.n * 4 > 8e6; }

/* Cases in which the values of A are a large part of the bytes read. */
static int is_narrow(const op_case *c) { return c->core.nnz >= 8 * c->core.rows && c->core.n <= 32; }

static double over_sum(const op_case *c) { return c->core.us / c->sum_us; }
static double over_plain(const op_case *c) { return c->core.plain_us / c->core.us; }
static double over_best(const op_case *c) { return c->core.best_us / c->core.us; }

enum { WORST = 5 };

static const struct figure {
  const char *text, *op, *type;
  double (*ratio)(const op_case *c);
  int (*counts)(const op_case *c);
  double target; /* 0 = none */
} figures[] = {
    {"max over sum", "max", "f32", over_sum, any, 1.05},
    {"min over sum", "min", "f32", over_sum, any, 1.05},
    {"mean over sum", "mean", "f32", over_sum, any, 1.05},
    {"max with arg over sum", "max_arg", "f32", over_sum, any, 1.35},
    {"user-defined sum of products over sum", "custom", "f32", over_sum, any, 1.02},
    {"f16 over f32, N >= 64 and B > 8 MB", "sum", "f16", over_sum, is_large, 0.65},
    {"bf16 over f32, N >= 64 and B > 8 MB", "sum", "bf16", over_sum, is_large, 0.65},
    {"cuSPARSE f16 without preprocess, over ours", "sum", "f16", over_plain, any, 1.5},
    {"cuSPARSE bf16 without preprocess, over ours", "sum", "bf16", over_plain, any, 1.5},
    {"copy_b over mul", "copy_b", "f32", over_sum, any, 1.0},
    {"cuSPARSE fed with ones, without preprocess, over copy_b, nnz/row >= 8 and N <= 32", "copy_b", "f32", over_plain,
     is_narrow, 1.3},
    {"cusparseSDDMM over sddmm", "sddmm", "f32", over_plain, any, 1.5},
    {"f64 over f32", "sum", "f64", over_sum, any, 0},
    {"max in f16 over sum in f32", "max", "f16", over_sum, any, 0},
    {"cuSPARSE f32 without preprocess, over ours", "sum", "f32", over_plain, any, 0},
    {"cuSPARSE f16, the best of all ways, over ours", "sum", "f16", over_best, any, 0},
    {"cuSPARSE bf16, the best of all ways, over ours", "sum", "bf16", over_best, any, 0},
    {"cuSPARSE fed with ones, the best of all ways, over copy_b, nnz/row >= 8 and N <= 32", "copy_b", "f32", over_best,
     is_narrow, 0},
};
enum { FIGURES = sizeof figures / sizeof *figures };

struct state {
  wlmi_figure_list figures[FIGURES];
  int failed; /* lines without a time */
};

/* For a ratio over our own sum the greatest is the worst, and the target is an upper bound. */
static int is_own(const struct figure *figure) { return figure->ratio == over_sum; }

static wlm_status add(const char *line, void *memory, FILE *out) {
  struct state *state = memory;
  op_case c = {.cols = wlmi_line_number(line, "cols"), .sum_us = wlmi_line_number(line, "sum_us")};
  if (!wlmi_line_string(line, "op", c.op) || !wlmi_line_string(line, "type", c.type) ||
      !wlmi_line_string(line, "matrix", c.core.matrix))
    return wlmi_fail(WLM_ERR_PARSE, "is no line of the results of operators: matrix, op and type are needed");
  if (!isfinite(wlmi_line_number(line, "us"))) {
    state->failed++;
    fprintf(out, "| %s | %.0f | - | %s | %s | - | failed | - | - | - |\n", c.core.matrix, wlmi_line_number(line, "n"),
            c.op, c.type);
    return WLM_OK;
  }
  wlm_status status = wlmi_core_case_read(line, &c.core);
  if (status != WLM_OK) return status;
  const double sddmm = wlmi_line_number(line, "cusparse_sddmm_us");
  if (isfinite(sddmm)) c.core.plain_us = sddmm;
  for (int i = 0; i < FIGURES; i++) {
    const struct figure *figure = &figures[i];
    if (!strcmp(figure->op, c.op) && !strcmp(figure->type, c.type) && figure->counts(&c))
      wlmi_figure_list_add(&state->figures[i], is_own(figure), figure->ratio(&c), c.core.matrix, c.core.n);
  }
  fprintf(out, "| %s | %.0f | %.1f | %s | %s | %.1f | `%s` |", c.core.matrix, c.core.n, c.core.nnz / c.core.rows, c.op,
          c.type, c.core.us, c.core.variant);
  wlmi_put_ratio(out, over_sum(&c));
  wlmi_put_us(out, c.core.plain_us);
  wlmi_put_ratio(out, over_plain(&c));
  fputc('\n', out);
  return WLM_OK;
}

static void finish(const void *memory, int64_t lines, FILE *out) {
  const struct state *state = memory;
  fprintf(out, "\n%lld lines", (long long)lines);
  if (state->failed) fprintf(out, ", of which %d failed", state->failed);
  fputs(".\n\n| time of | cases | geometric mean | target | the worst |\n|---|---|---|---|---|\n", out);
  for (int i = 0; i < FIGURES; i++) {
    const struct figure *figure = &figures[i];
    const wlmi_figure_list *ranked = &state->figures[i];
    const double mean = wlmi_figure_mean(&ranked->all);
    if (!ranked->all.count) continue;
    fprintf(out, "| %s | %d | %.3fx |", figure->text, ranked->all.count, mean);
    if (figure->target > 0) {
      const int met = is_own(figure) ? mean <= figure->target : mean >= figure->target;
      fprintf(out, " at %s %.2fx, %s |", is_own(figure) ? "most" : "least", figure->target, met ? "met" : "missed");
    } else {
      fputs(" - |", out);
    }
    wlmi_figure_list_put(ranked, WORST, out);
    fputs(" |\n", out);
  }
}

const wlmi_summary wlmi_summary_operators = {
    "operators",
    "| matrix | N | nnz/row | op | type | us | variant | over the f32 sum | cuSPARSE | over ours |\n"
    "|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
