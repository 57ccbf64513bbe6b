#include "bench/host_rivals.h"

#include <stdio.h>

static const wlm_host_rival *const rivals[WLM_HOST_RIVALS] = {&wlm_rival_openmp, &wlm_rival_graphblas};

void wlm_host_rivals_enter(const wlm_operands *operands, wlm_entrant entrants[WLM_HOST_RIVALS]) {
  const wlm_host_product product = {wlm_matrix_csr(operands->matrix), operands->spec.problem.n, operands->b.memory,
                                    operands->c.memory};
  for (int i = 0; i < WLM_HOST_RIVALS; i++) {
    entrants[i] = (wlm_entrant){.enqueue = rivals[i]->enqueue, .destroy = rivals[i]->destroy};
    snprintf(entrants[i].name, sizeof entrants[i].name, "%s", rivals[i]->name);
    if (!product.csr->values)
      wlm_entrant_fail(&entrants[i], "needs values");
    else if (rivals[i]->create(&product, &entrants[i].user) != WLM_OK)
      wlm_entrant_fail(&entrants[i], wlm_error_detail());
  }
}

void wlm_host_rivals_write(const wlm_entrant entrants[WLM_HOST_RIVALS], wlm_text *line) {
  const char *before = "";
  wlm_text_puts(line, "\"host_rivals\":{");
  for (int i = 0; i < WLM_HOST_RIVALS; i++) {
    wlm_text_printf(line, "%s\"%s\":", i ? "," : "", entrants[i].name);
    if (entrants[i].failure)
      wlm_text_puts(line, "null");
    else
      wlm_text_printf(line, "%.3f", 1e6 * entrants[i].seconds);
  }
  wlm_text_puts(line, "},\"host_rival_errors\":{");
  for (int i = 0; i < WLM_HOST_RIVALS; i++) {
    if (!entrants[i].failure) continue;
    wlm_text_printf(line, "%s\"%s\":", before, entrants[i].name);
    wlm_text_json_string(line, entrants[i].failure);
    before = ",";
  }
  wlm_text_puts(line, "}");
}
