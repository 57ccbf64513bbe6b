#include "bench/host_baselines.h"

#include <stdio.h>

static const wlmi_host_baseline *const baselines[WLM_HOST_BASELINES] = {&wlmi_baseline_openmp,
                                                                        &wlmi_baseline_graphblas};

void wlmi_host_baselines_enter(const wlmi_operands *operands, wlmi_entrant entrants[WLM_HOST_BASELINES]) {
  const wlmi_host_product product = {wlmi_matrix_csr(operands->matrix), operands->spec.problem.n, operands->b.memory,
                                     operands->c.memory};
  for (int i = 0; i < WLM_HOST_BASELINES; i++) {
    entrants[i] = (wlmi_entrant){.enqueue = baselines[i]->enqueue, .destroy = baselines[i]->destroy};
    snprintf(entrants[i].name, sizeof entrants[i].name, "%s", baselines[i]->name);
    if (!product.csr->values)
      wlmi_entrant_fail(&entrants[i], "needs values");
    else if (baselines[i]->create(&product, &entrants[i].user) != WLM_OK)
      wlmi_entrant_fail(&entrants[i], wlm_error_detail());
  }
}

void wlmi_host_baselines_write(const wlmi_entrant entrants[WLM_HOST_BASELINES], wlmi_text *line) {
  const char *before = "";
  wlmi_text_puts(line, "\"host_rivals\":{");
  for (int i = 0; i < WLM_HOST_BASELINES; i++) {
    wlmi_text_printf(line, "%s\"%s\":", i ? "," : "", entrants[i].name);
    if (entrants[i].failure)
      wlmi_text_puts(line, "null");
    else
      wlmi_text_printf(line, "%.3f", 1e6 * entrants[i].seconds);
  }
  wlmi_text_puts(line, "},\"host_rival_errors\":{");
  for (int i = 0; i < WLM_HOST_BASELINES; i++) {
    if (!entrants[i].failure) continue;
    wlmi_text_printf(line, "%s\"%s\":", before, entrants[i].name);
    wlmi_text_json_string(line, entrants[i].failure);
    before = ",";
  }
  wlmi_text_puts(line, "}");
}
