/* Suite "core" in short: the cases as a Markdown table, then the ratios that matter. Every ratio is a baseline's time
 * over ours from the same line, that is, from the same run. Missing times (of an algorithm that refused) are left out.
 */
#include <math.h>
#include <string.h>

#include "bench/summary.h"

typedef enum ratio { PLAIN, PREPARED, DEFAULT, GE_SPMM, CHOSEN, OPENMP, GRAPHBLAS, RATIOS } ratio;
static const char *const ratio_texts[RATIOS] = {
    "unprepared, over the best cuSPARSE way without preprocess",
    "prepared, over the best cuSPARSE way of all, preprocess kept",
    "unprepared, over cuSPARSE's default without preprocess",
    "unprepared, over our GE-SpMM (row_crc)",
    "what the dispatcher chose, over the best unprepared",
    "unprepared, over a plain OpenMP loop",
    "unprepared, over SuiteSparse:GraphBLAS",
};

enum { WORST = 5, MAX_CORA = 8 };

struct state {
  wlmi_figure_list figures[RATIOS];
  struct cora {
    double n, us, prepared_us, baseline_us;
  } cora[MAX_CORA];
  int cora_count;
  double reddit_gbs, reddit_prepared_gbs; /* of N = 128, 0 = not there */
};

static void put_way(FILE *out, double us, const char *way) {
  if (isfinite(us))
    fprintf(out, " %.1f (%s) |", us, way);
  else
    wlmi_put_us(out, us);
}

static wlm_status add(const char *line, void *memory, FILE *out) {
  struct state *state = memory;
  wlmi_core_case c;
  wlm_status status = wlmi_core_case_read(line, &c);
  if (status != WLM_OK) return status;
  const double ratios[RATIOS] = {
      [PLAIN] = c.plain_us / c.us,         [PREPARED] = c.best_us / c.prepared_us, [DEFAULT] = c.default_us / c.us,
      [GE_SPMM] = c.ge_spmm_us / c.us,     [CHOSEN] = c.chosen_us / c.us,          [OPENMP] = c.openmp_us / c.us,
      [GRAPHBLAS] = c.graphblas_us / c.us,
  };
  /* For baselines the worst case is the least ratio, for our own choice the greatest. */
  for (int i = 0; i < RATIOS; i++) wlmi_figure_list_add(&state->figures[i], i == CHOSEN, ratios[i], c.matrix, c.n);
  if (!strcmp(c.matrix, "cora") && state->cora_count < MAX_CORA)
    state->cora[state->cora_count++] = (struct cora){c.n, c.us, c.prepared_us, c.best_us};
  if (!strcmp(c.matrix, "twin:reddit") && c.n == 128) {
    state->reddit_gbs = c.gather_gbs;
    state->reddit_prepared_gbs = c.gather_gbs * c.us / c.prepared_us;
  }
  fprintf(out, "| %s | %.0f | %.1f | `%s` | %.1f |", c.matrix, c.n, c.nnz / c.rows, c.variant, c.us);
  put_way(out, c.plain_us, c.plain_way);
  wlmi_put_ratio(out, ratios[PLAIN]);
  if (!strcmp(c.prepared_variant, c.variant))
    fputs(" same |", out);
  else
    fprintf(out, " `%s` |", c.prepared_variant[0] ? c.prepared_variant : "-");
  if (c.prepare_us > 0)
    fprintf(out, " %.1f after %.0f |", c.prepared_us, c.prepare_us);
  else
    wlmi_put_us(out, c.prepared_us);
  put_way(out, c.best_us, c.best_way);
  wlmi_put_ratio(out, ratios[PREPARED]);
  wlmi_put_us(out, c.chosen_us);
  wlmi_put_us(out, c.ge_spmm_us);
  fputc('\n', out);
  return WLM_OK;
}

static void finish(const void *memory, int64_t cases, FILE *out) {
  const struct state *state = memory;
  fprintf(out, "\n%lld cases.\n\n| time of | cases | geometric mean | the worst |\n|---|---|---|---|\n",
          (long long)cases);
  for (int i = 0; i < RATIOS; i++) {
    const wlmi_figure_list *figure = &state->figures[i];
    if (!figure->all.count) continue;
    fprintf(out, "| %s | %d | %.2fx |", ratio_texts[i], figure->all.count, wlmi_figure_mean(&figure->all));
    wlmi_figure_list_put(figure, WORST, out);
    fputs(" |\n", out);
  }
  if (state->cora_count) fputs("\n| cora | unprepared us | prepared us | best cuSPARSE us |\n|---|---|---|---|\n", out);
  for (int i = 0; i < state->cora_count; i++) {
    const struct cora *cora = &state->cora[i];
    fprintf(out, "| N = %.0f | %.2f |", cora->n, cora->us);
    wlmi_put_us(out, cora->prepared_us);
    wlmi_put_us(out, cora->baseline_us);
    fputc('\n', out);
  }
  if (state->reddit_gbs > 0)
    fprintf(out, "\nGather bandwidth of twin:reddit at N = 128: %.2f TB/s unprepared, %.2f TB/s prepared.\n",
            state->reddit_gbs / 1e3, state->reddit_prepared_gbs / 1e3);
}

const wlmi_summary wlmi_summary_core = {
    "core",
    "| matrix | N | nnz/row | unprepared | us | cuSPARSE, no preprocess | speed-up | prepared | us | cuSPARSE, all "
    "ways "
    "| speed-up | chosen | GE-SpMM |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    sizeof(struct state),
    add,
    finish,
};
