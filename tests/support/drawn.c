#include "support/drawn.h"

#include <stdlib.h>

#include "support/exact_matrix.h"
#include "support/own.h"

void draw_matrix(drawn *d, test_random *random, int has_values) {
  d->csr = (wlm_csr)WLM_CSR_INIT;
  d->csr.rows = 1 + (int64_t)test_draw(random, DRAWN_ROWS);
  d->csr.cols = 1 + (int64_t)test_draw(random, DRAWN_COLS);
  d->rowptr[0] = 0;
  for (int64_t i = 0; i < d->csr.rows; i++) {
    const int32_t room = DRAWN_NNZ - d->rowptr[i], length = test_draw(random, 4) ? (int32_t)test_draw(random, 14) : 0;
    d->rowptr[i + 1] = d->rowptr[i] + (length < room ? length : room);
  }
  d->csr.nnz = d->rowptr[d->csr.rows];
  for (int64_t p = 0; p < d->csr.nnz; p++) d->colind[p] = (int32_t)test_draw(random, (uint64_t)d->csr.cols);
  d->csr.rowptr = d->rowptr;
  d->csr.colind = d->colind;
  d->csr.values = has_values ? d->values : NULL;
  exact_fill(d->values, DRAWN_NNZ * DRAWN_HEADS, 1, 5, test_draw(random, 1000));
  exact_fill(d->b, DRAWN_DENSE, 1, 9, test_draw(random, 1000));
  exact_fill(d->x, DRAWN_DENSE, 1, 9, test_draw(random, 1000));
  exact_fill(d->bias, DRAWN_N, 1, 9, test_draw(random, 1000));
}

wlm_status drawn_plan_once(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem,
                           wlm_execute_args args) {
  OWNED(wlm_matrix) *matrix = NULL;
  OWNED(wlm_plan) *plan = NULL;
  FREED void *workspace = NULL;
  wlm_status status = wlm_matrix_create(context, csr, NULL, &matrix);
  if (status == WLM_OK) status = wlm_plan_create(context, matrix, problem, &plan);
  if (status == WLM_OK) {
    args.workspace_size = wlm_plan_workspace_size(plan);
    args.workspace = workspace = aligned_alloc(64, (args.workspace_size + 64) / 64 * 64);
    status = wlm_plan_execute(plan, &args);
  }
  return status;
}
