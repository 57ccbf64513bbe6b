/* Users' expressions in double, over blocks of columns, for the float64 reference. */
#ifndef WLM_VERIFY_EVALUATE_H
#define WLM_VERIFY_EVALUATE_H

#include "common/expression.h"

enum { WLM_BLOCK = 64 };

/* A number in each column, and the size at which its rounding errors have to be judged: sum |a b| where the value is
 * sum a b, though that may cancel. */
typedef struct wlmi_column_block {
  double value[WLM_BLOCK], size[WLM_BLOCK];
} wlmi_column_block;

void wlmi_block_fill(wlmi_column_block *block, int width, double value); /* exact: its size is its absolute value */

/* `operands` by wlmi_operand; those that the expression does not use may be NULL. `step` is the error, relative to the
 * size, that float arithmetic is allowed: where an argument so far off takes a comparison the other way, the size of
 * the result covers both ways. `result` may be one of the operands. */
void wlmi_evaluate(const wlmi_expression *expression, const wlmi_column_block *const operands[WLM_OPERANDS], int width,
                   double step, wlmi_column_block *result);

#endif
