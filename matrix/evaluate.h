/* Users' expressions in double, over blocks of columns, for the float64 reference. */
#ifndef WLM_MATRIX_EVALUATE_H
#define WLM_MATRIX_EVALUATE_H

#include "common/expression.h"

enum { WLM_BLOCK = 64 };

/* A number in each column, and the size at which its rounding errors have to be judged: sum |a b| where the value is
 * sum a b, though that may cancel. */
typedef struct wlm_column_block {
  double value[WLM_BLOCK], size[WLM_BLOCK];
} wlm_column_block;

void wlm_block_fill(wlm_column_block *block, int width, double value); /* exact: its size is its absolute value */

/* `operands` by wlm_operand; those that the expression does not use may be NULL. `step` is the error, relative to the
 * size, that float arithmetic is allowed: where an argument so far off takes a comparison the other way, the size of
 * the result covers both ways. `result` may be one of the operands. */
void wlm_evaluate(const wlm_expression *expression, const wlm_column_block *const operands[WLM_OPERANDS], int width,
                  double step, wlm_column_block *result);

#endif
