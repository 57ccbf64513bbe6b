/* Edge lists and the expected results of wlm_csr_from_coo. */
#ifndef WLM_TESTS_SUPPORT_COO_CHECK_H
#define WLM_TESTS_SUPPORT_COO_CHECK_H

#include "warploom/warploom.h"

/* One list. Indices are drawn around the matrix where `outside` is set. */
typedef struct coo_case {
  int64_t rows, cols, nnz;
  int sorted, outside;
  wlm_index index_type, rowptr_type, colind_type;
} coo_case;

int coo_case_count(void);
coo_case coo_case_of(int number);

/* Makes the list, with arrays in host memory exactly as large as they must be, has `convert` fill the CSR matrix, and
 * compares every element with a list that qsort has put in order. A list in order is converted with and without the
 * promise that it is. */
void coo_check(const coo_case *c, uint64_t seed, void (*convert)(void *user, const wlm_coo *coo), void *user);

#endif
