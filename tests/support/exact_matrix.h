/* Operands of small integers, so that operations on them are exact in any order, and matrices derived from others: with
 * edges repeated, reordered, shifted, transposed. */
#ifndef WLM_TESTS_SUPPORT_EXACT_MATRIX_H
#define WLM_TESTS_SUPPORT_EXACT_MATRIX_H

#include "csr/csr.h"
#include "warploom/warploom.h"

/* Of a transpose, `order` has the positions of the values of its entries. */
typedef struct exact_matrix {
  wlmi_csr_host a;
  int64_t *order;
} exact_matrix;

void *exact_array(int64_t count, size_t each); /* of zeros; free() */

/* One row is longer than all others together. */
exact_matrix exact_matrix_make(int64_t longest);
void exact_matrix_release(exact_matrix *m);

exact_matrix exact_twice(const exact_matrix *m);    /* every row's edges, and all of them once more behind */
exact_matrix exact_permuted(const exact_matrix *m); /* the edges of each row in another order */
/* A row of so many edges before all others: whatever splits rows by counting edges splits them elsewhere. */
exact_matrix exact_shifted(const exact_matrix *m, int64_t edges);
/* As a plan takes it, rowptr of 64 bits; the arrays stay m's. */
wlm_csr exact_csr(const exact_matrix *m);
/* As a plan with `transpose` sees it: the values lie where they lay. */
exact_matrix exact_transposed(const exact_matrix *m);
/* Makes of that a matrix of its own, with values where its edges are. */
void exact_settle(exact_matrix *t);

/* From `low` to `high` with either sign: never 0, whose sign could depend on the order of the edges. */
void exact_fill(float *to, int64_t count, int low, int high, uint64_t seed);
/* Powers of 2 that are mostly 1, so that no product leaves the range of float, in whatever order. */
void exact_fill_powers(float *to, int64_t count, uint64_t seed);
/* 3 x - 2 y; free() */
float *exact_mix(const float *x, const float *y, int64_t count);

#endif
