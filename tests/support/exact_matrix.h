/* Operands of small integers, so that operations on them are exact in any order, and matrices derived from others: with
 * edges repeated, reordered, shifted, transposed. */
#pragma once

#include "core/csr/csr.h"
#include "warploom/warploom.h"

/* For a transpose, order[i] is the position of the value of entry i. */
typedef struct exact_matrix {
  wlmi_csr_host a;
  int64_t *order;
} exact_matrix;

void *exact_array(int64_t count, size_t each); /* of zeros; free() */

/* A matrix with one row that is longer than all others together. */
exact_matrix exact_matrix_make(int64_t longest);
void exact_matrix_release(exact_matrix *m);

exact_matrix exact_twice(const exact_matrix *m);    /* each row's edges twice, one copy behind the other */
exact_matrix exact_permuted(const exact_matrix *m); /* the edges of each row in another order */
/* Inserts a row of `edges` edges at the top, so that a kernel that divides by counting edges splits the other rows
 * elsewhere. */
exact_matrix exact_shifted(const exact_matrix *m, int64_t edges);
/* Makes the argument of a plan, with 64-bit rowptr; it points to m's arrays. */
wlm_csr exact_csr(const exact_matrix *m);
/* The transpose as a plan with `transpose` sees it: the values stay in their places. */
exact_matrix exact_transposed(const exact_matrix *m);
/* Turns a transpose into an ordinary matrix by moving its values to its edges. */
void exact_settle(exact_matrix *t);

/* Random integers from `low` to `high` with either sign, but not 0: the sign of a zero could depend on the order of
 * the edges. */
void exact_fill(float *to, int64_t count, int low, int high, uint64_t seed);
/* Powers of 2, most of them 1, so that no product leaves the range of float, in any order. */
void exact_fill_powers(float *to, int64_t count, uint64_t seed);
/* 3 x - 2 y; free() */
float *exact_mix(const float *x, const float *y, int64_t count);
