#include "bench/entrant.h"

#include <stdio.h>

#include "bench/baseline_cusparse.h"

static void destroy(void *user) { wlmi_cusparse_destroy(user); }

void wlmi_entrant_cusparse(const wlmi_operands *operands, int way, wlmi_entrant *entrant, double *preprocess_seconds) {
  const int is_sddmm = way == WLM_CUSPARSE_SDDMM;
  const wlmi_cusparse_product product = {.a = wlmi_matrix_csr(operands->matrix),
                                         .n = operands->spec.problem.n,
                                         .type = operands->spec.problem.dense_type,
                                         .b = operands->b.memory,
                                         .dense = is_sddmm ? operands->x.memory : operands->c.memory,
                                         .values = is_sddmm ? operands->c.memory : NULL};
  wlmi_cusparse *baseline;
  *entrant = (wlmi_entrant){.enqueue = wlmi_cusparse_enqueue, .destroy = destroy};
  snprintf(entrant->name, sizeof entrant->name, "%s", wlmi_cusparse_name(way));
  if (wlmi_cusparse_create(operands->device, way, &product, &baseline) != WLM_OK)
    wlmi_entrant_fail(entrant, wlm_error_detail());
  entrant->user = baseline;
  if (preprocess_seconds) *preprocess_seconds = baseline ? wlmi_cusparse_preprocess_seconds(baseline) : 0;
}
