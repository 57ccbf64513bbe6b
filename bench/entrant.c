#include "bench/entrant.h"

#include <stdio.h>

#include "bench/rival_cusparse.h"

static void destroy(void *user) { wlm_cusparse_destroy(user); }

void wlm_entrant_cusparse(const wlm_operands *operands, int way, wlm_entrant *entrant, double *preprocess_seconds) {
  const int is_sddmm = way == WLM_CUSPARSE_SDDMM;
  const wlm_cusparse_product product = {.a = wlm_matrix_csr(operands->matrix),
                                        .n = operands->spec.problem.n,
                                        .type = operands->spec.problem.dense_type,
                                        .b = operands->b.memory,
                                        .dense = is_sddmm ? operands->x.memory : operands->c.memory,
                                        .values = is_sddmm ? operands->c.memory : NULL};
  wlm_cusparse *rival;
  *entrant = (wlm_entrant){.enqueue = wlm_cusparse_enqueue, .destroy = destroy};
  snprintf(entrant->name, sizeof entrant->name, "%s", wlm_cusparse_name(way));
  if (wlm_cusparse_create(operands->device, way, &product, &rival) != WLM_OK)
    wlm_entrant_fail(entrant, wlm_error_detail());
  entrant->user = rival;
  if (preprocess_seconds) *preprocess_seconds = rival ? wlm_cusparse_preprocess_seconds(rival) : 0;
}
