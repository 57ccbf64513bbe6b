/* wlm_matrix_validate: the first row whose offsets or columns are wrong, also where nnz is far beyond the arrays. */
#include "support/bare_host.h"
#include "support/test.h"

enum { ROWS = 6, COLS = 5, NNZ = 12 };

typedef struct arrays {
  int64_t rowptr[ROWS + 1], colind[NNZ];
} arrays;

static const arrays good = {{0, 2, 2, 5, 9, 9, 12}, {0, 4, 1, 1, 0, 3, 2, 4, 0, 4, 3, 0}};

/* Validates with both types of rowptr and of colind. */
static void expect(const arrays *a, int64_t nnz, wlm_status expected, int64_t expected_row, const char *says) {
  int32_t rowptr[ROWS + 1], colind[NNZ];
  for (int i = 0; i <= ROWS; i++) rowptr[i] = (int32_t)a->rowptr[i];
  for (int i = 0; i < NNZ; i++) colind[i] = (int32_t)a->colind[i];
  for (int types = 0; types < 4; types++) {
    wlm_matrix_options options = MATRIX_OPTIONS(.grade = WLM_STATS_ESTIMATED /* estimated stats read no array */);
    wlm_csr csr =
        CSR(.rows = ROWS, .cols = COLS, .nnz = nnz, .rowptr_type = types & 1 ? WLM_I64 : WLM_I32,
            .colind_type = types & 2 ? WLM_I64 : WLM_I32, .rowptr = types & 1 ? (const void *)a->rowptr : rowptr,
            .colind = types & 2 ? (const void *)a->colind : colind);
    int64_t row = 99;
    OWN(wlm_matrix, matrix, wlm_matrix_create(bare_host, &csr, &options, &matrix));
    assert_status(expected, wlm_matrix_validate(matrix, NULL, &row));
    assert_int_equal(row, expected_row);
    if (says) assert_contains(wlm_error_detail(), says);
    assert_status(expected, wlm_matrix_validate(matrix, NULL, NULL));
  }
}

TEST(names_the_first_wrong_row) {
  static const struct {
    int is_column, at;
    int64_t value, nnz, row;
    const char *says;
  } wrongs[] = {
      {0, 0, 1, NNZ, 0, "row 0: rowptr starts at 1, must start at 0"},
      {0, 0, -1, NNZ, 0, "starts at -1"},
      {0, 3, 1, NNZ, 2, "row 2: rowptr falls from 2 to 1"},
      {0, 4, 13, NNZ, 3, "row 3: ends at 13, which is beyond nnz = 12"},
      {0, 6, 11, NNZ, 5, "row 5: ends at 11, but the last row must end at nnz = 12"},
      {0, 6, 12, 2000000000, 5, "row 5: ends at 12, but the last row must end at nnz = 2000000000"},
      {1, 0, COLS, NNZ, 0, "row 0: colind[0] is 5, must be 0 to 4 (0-based)"},
      {1, 5, -1, NNZ, 3, "row 3: colind[5] is -1"},
      {1, 11, INT32_MIN, NNZ, 5, "row 5: colind[11] is"},
  };
  expect(&good, NNZ, WLM_OK, -1, NULL);
  for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
    arrays a = good;
    (wrongs[i].is_column ? a.colind : a.rowptr)[wrongs[i].at] = wrongs[i].value;
    expect(&a, wrongs[i].nnz, WLM_ERR_INVALID_ARGUMENT, wrongs[i].row, wrongs[i].says);
  }
  arrays both = good; /* first a wrong column in a row before wrong offsets, then the reverse */
  both.colind[6] = 7, both.rowptr[5] = 8;
  expect(&both, NNZ, WLM_ERR_INVALID_ARGUMENT, 3, "colind[6]");
  both.colind[6] = 2, both.colind[10] = 7;
  expect(&both, NNZ, WLM_ERR_INVALID_ARGUMENT, 4, "falls from 9 to 8");
}

TEST(a_matrix_without_rows_is_valid) {
  static const int32_t rowptr[] = {0};
  wlm_csr csr = CSR(.rowptr = rowptr);
  int64_t row = 99;
  GET(wlm_matrix *, matrix, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  assert_status(WLM_OK, wlm_matrix_validate(matrix, NULL, &row));
  assert_int_equal(row, -1);
  wlm_matrix_destroy(matrix);
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_validate(NULL, NULL, &row));
}

/* wlm_matrix_create also reads no colind before it has checked that rowptr ends at nnz. */
TEST(a_short_rowptr_is_refused) {
  static const int32_t rowptr[] = {0, 1}, colind[] = {0};
  wlm_csr csr = CSR(.rows = 1, .cols = 1, .nnz = 2000000000, .rowptr = rowptr, .colind = colind);
  wlm_matrix *matrix;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_matrix_create(bare_host, &csr, NULL, &matrix));
  assert_contains(wlm_error_detail(), "must end at nnz = 2000000000");
}

GROUP(bare_host_begin, bare_host_end)
