/* Products and SDDMMs whose arrays have gaps: column-major B and C, and batches behind each other or side by side.
 * Every element of every product is compared with float64, positions and their gradients, too; gaps hold NaN and must
 * stay as they are, and arrays have exactly the needed size. Works on any device, whose memory it uses. */
#pragma once

#include "runtime/context.h"

/* What is computed; zeroes are the sum of products in f32. */
typedef struct strided_product {
  const char *name;
  wlm_reduce reduce;
  wlm_type type;
  int transpose, heads, epilogue, pattern; /* epilogue: bias, relu, alpha and beta */
  wlm_sample sample;
  const char *custom;
  int argmax; /* positions of a pattern or of values */
  wlm_operation operation;
} strided_product;
enum { STRIDED_PRODUCTS = 13 };
extern const strided_product strided_products[STRIDED_PRODUCTS];

typedef enum strided_place { STRIDED_BEHIND, STRIDED_SIDE_BY_SIDE, STRIDED_SHARED } strided_place;
typedef struct strided_layout {
  int64_t batch;
  wlm_order b_order, c_order;
  strided_place b, c, values;
} strided_layout;
enum { STRIDED_LAYOUTS = 8 };
extern const strided_layout strided_layouts[STRIDED_LAYOUTS];

/* Checks a product in a layout by wlm_spmm, and by plans: with a variant, which `seed` draws, of one family in `one_in`
 * (support/seed.h), or with the chosen kernel where that is 0. Returns the number of families. Fails the running test
 * where a number is wrong. */
int strided_check(wlm_context *context, const strided_product *product, const strided_layout *layout, int64_t n,
                  int one_in, uint64_t seed);
