/* Small random matrices and dense operands in memory at fixed addresses, for tests that reuse addresses. Operands are
 * small integers, so any kernel gives the same bits. */
#pragma once

#include "support/shapes.h"
#include "warploom/warploom.h"

enum {
  DRAWN_ROWS = 60,
  DRAWN_COLS = 70,
  DRAWN_NNZ = 700,
  DRAWN_N = 16,
  DRAWN_HEADS = 2,
  DRAWN_DENSE = (DRAWN_ROWS + DRAWN_COLS) * DRAWN_N
};

typedef struct drawn {
  _Alignas(16) int32_t rowptr[DRAWN_ROWS + 1];
  _Alignas(16) int32_t colind[DRAWN_NNZ];
  _Alignas(16) float values[DRAWN_NNZ * DRAWN_HEADS];
  float b[DRAWN_DENSE], x[DRAWN_DENSE], bias[DRAWN_N];
  wlm_csr csr; /* of the arrays above */
} drawn;

/* Draws a new size, pattern, values and operands. Rows have at most 13 non-zeros. */
void draw_matrix(drawn *drawn, test_random *random, int has_values);

/* Computes the problem with a new plan. */
wlm_status drawn_plan_once(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem, wlm_execute_args args);
