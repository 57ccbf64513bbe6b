/* wlm_csr_from_coo on the host device: every list of support/coo_check.h, and arguments that it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/asserts.h"
#include "support/bare_host.h"
#include "support/coo_check.h"

static void convert(void *user, const wlm_coo *coo) { assert_status(WLM_OK, wlm_csr_from_coo(user, coo)); }

static void every_list(void **state) {
  (void)state;
  for (int number = 0; number < coo_case_count(); number++) {
    const coo_case c = coo_case_of(number);
    coo_check(&c, (uint64_t)number + 1, convert, bare_host);
  }
}

static void refused(wlm_context *context, const wlm_coo *coo, wlm_status expected, const char *says) {
  assert_status(expected, wlm_csr_from_coo(context, coo));
  assert_contains(wlm_error_detail(), says);
}

static void refuses(void **state) {
  (void)state;
  static const int64_t row[3] = {2, 0, 1}, col[3] = {1, 1, 0};
  static int64_t rowptr[4], colind[3], perm[3];
  wlm_context *const context = bare_host;
  wlm_coo good = WLM_COO_INIT, coo;
  good.rows = 3;
  good.cols = 2;
  good.nnz = 3;
  good.row = row;
  good.col = col;
  good.rowptr = rowptr;
  good.colind = colind;
  good.perm = perm;
  good.index_type = good.rowptr_type = good.colind_type = WLM_I64;
  assert_status(WLM_OK, wlm_csr_from_coo(context, &good));
  refused(context, NULL, WLM_ERR_INVALID_ARGUMENT, "wlm_csr_from_coo: coo is NULL");
  refused(NULL, &good, WLM_ERR_INVALID_ARGUMENT, "wlm_csr_from_coo: context is NULL");
  coo = good, coo.nnz = -1;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "nnz = -1");
  coo = good, coo.row = NULL;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "row");
  coo = good, coo.col = (const char *)col + 1;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "col");
  coo = good, coo.rowptr = NULL;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "rowptr");
  coo = good, coo.perm = (char *)perm + 4;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "perm");
  coo = good, coo.index_type = (wlm_index)7;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "wlm_coo.index_type is 7");
  coo = good, coo.rowptr_type = (wlm_index)7;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "rowptr_type is 7");
  coo = good, coo.cols = 0;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "no columns");
  coo = good, coo.rows = 0;
  refused(context, &coo, WLM_ERR_INVALID_ARGUMENT, "no rows");
  coo = good, coo.index_type = WLM_I32, coo.rows = (int64_t)1 << 31;
  refused(context, &coo, WLM_ERR_OVERFLOW, "2147483648 rows do not fit indices of i32");
  coo = good, coo.rowptr_type = WLM_I32, coo.nnz = (int64_t)1 << 31;
  refused(context, &coo, WLM_ERR_OVERFLOW, "do not fit a rowptr of i32");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_list), cmocka_unit_test(refuses)};
  return cmocka_run_group_tests(tests, bare_host_begin, bare_host_end);
}
