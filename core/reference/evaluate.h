/* Evaluates users' expressions in double over blocks of columns, for the float64 reference. */
#pragma once

#include "core/problem/expression.h"

enum { WLMI_BLOCK = 64 };

/* One number for each column, and the size to which its rounding error is relative: for the value sum a b the size is
 * sum |a b|, which stays large where the value cancels. */
typedef struct wlmi_column_block {
  double value[WLMI_BLOCK], size[WLMI_BLOCK];
} wlmi_column_block;

/* The columns of a block. */
typedef struct wlmi_columns {
  int64_t first;
  int count;
} wlmi_columns;

void wlmi_block_fill(wlmi_column_block *block, int width, double value); /* exact: its size is its absolute value */

/* `operands` is indexed by the expression's operands, wlmi_operand or those of a message; unused ones may be NULL. Of
 * operands whose bit is in `common` all columns are the same, and only the first one is read.
 * `step` is the error, relative to the size, that float arithmetic may make. If such an error in an argument would
 * change a comparison, the size of the result covers both outcomes. `result` may be one of the operands. */
void wlmi_evaluate(const wlmi_expression *expression, const wlmi_column_block *const *operands, unsigned int common,
                   int width, double step, wlmi_column_block *result);
