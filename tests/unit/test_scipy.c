/* Matrices of scipy.sparse.save_npz: which are read and which refused, with the array and the entry of the error. */
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/folder.h"
#include "support/npz.h"
#include "support/test.h"

/* [[0, 5, 0], [1, 0, -2.5]] */
static const int32_t row[] = {1, 0, 1}, col[] = {2, 1, 0};
static const int64_t rowptr[] = {0, 1, 3}, colind[] = {1, 2, 0}, colptr[] = {0, 1, 2, 3}, rowind[] = {1, 0, 1};
static const float value[] = {5, -2.5F, 1}, coo_value[] = {-2.5F, 5, 1}, csc_value[] = {1, 5, -2.5F};
static const int64_t shape[] = {2, 3};
static const int64_t huge[] = {2147483648, 3}, negative[] = {-1, 3};

typedef struct array {
  const char *name, *type, *shape;
  const void *data;
  size_t size;
} array;
#define ARRAY(name, type, shape, data) \
  { name ".npy", type, shape, data, sizeof(data) }
#define HEAD(format) {"format.npy", "|S3", "()", format, 3}, ARRAY("shape", "<i8", "(2,)", shape)
enum { ARRAYS = 6 };

static const array csr[ARRAYS] = {HEAD("csr"), ARRAY("data", "<f4", "(3,)", value),
                                  ARRAY("indices", "<i8", "(3,)", colind), ARRAY("indptr", "<i8", "(3,)", rowptr)};
static const array csc[ARRAYS] = {HEAD("csc"), ARRAY("data", "<f4", "(3,)", csc_value),
                                  ARRAY("indices", "<i8", "(3,)", rowind), ARRAY("indptr", "<i8", "(4,)", colptr)};
static const array coo[ARRAYS] = {HEAD("coo"), ARRAY("row", "<i4", "(3,)", row), ARRAY("col", "<i4", "(3,)", col),
                                  ARRAY("data", "<f4", "(3,)", coo_value)};

static const char *write_arrays(const array *arrays, int level) {
  npz_writer writer;
  npz_begin(&writer, folder_file(&folder, "a.npz"), level);
  for (int i = 0; i < ARRAYS && arrays[i].name; i++)
    npz_array(&writer, arrays[i].name, arrays[i].type, arrays[i].shape, arrays[i].data, arrays[i].size);
  npz_end(&writer);
  return folder.file;
}

/* Writes the arrays with one of them replaced, or left out where it has no type. */
static const char *write_changed(const array *arrays, const array *other) {
  array changed[ARRAYS];
  int count = 0;
  memset(changed, 0, sizeof changed);
  for (int i = 0; i < ARRAYS && arrays[i].name; i++) {
    const array *a = strcmp(arrays[i].name, other->name) ? &arrays[i] : other;
    if (a->type) changed[count++] = *a;
  }
  return write_arrays(changed, 0);
}

static void check(const wlmi_csr_host *a, const float expected[3]) {
  assert_csr(a);
  assert_int_equal(a->rows, 2);
  assert_int_equal(a->cols, 3);
  assert_int_equal(a->nnz, 3);
  assert_int_equal(a->rowptr[1], 1);
  assert_int_equal(a->colind[0], 1);
  assert_int_equal(a->colind[1], 0);
  assert_int_equal(a->colind[2], 2);
  for (int i = 0; i < 3; i++) assert_true(a->values[i] == expected[i]);
}

TEST(formats) {
  static const array *const all[] = {csr, csc, coo};
  static const float expected[] = {5, 1, -2.5F};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int level = 0; level <= 9; level += 3) {
      HOLD(wlmi_csr_host, a, wlmi_input_read(write_arrays(all[i], level), &a));
      check(&a, expected);
    }
}

TEST(types_of_values) {
  static const double doubles[] = {5.1, -2.5, 1e-50};
  static const uint16_t halves[] = {0x4500, 0xC100, 0x3C00};
  static const int8_t bytes[] = {5, -2, 1};
  static const uint64_t large[] = {UINT64_MAX, 2, 1};
  static const unsigned char truths[] = {1, 0, 1};
  static const double infinite[] = {-INFINITY, 2, INFINITY};
  static const struct {
    array data;
    float expected[3]; /* in the order of CSR */
  } cases[] = {
      {ARRAY("data", "<f8", "(3,)", doubles), {5.1F, 0, -2.5F}},
      {ARRAY("data", "<f2", "(3,)", halves), {5, 1, -2.5F}},
      {ARRAY("data", "|i1", "(3,)", bytes), {5, 1, -2}},
      {ARRAY("data", "<u8", "(3,)", large), {18446744073709551616.0F, 1, 2}},
      {ARRAY("data", "|b1", "(3,)", truths), {1, 1, 0}},
      {ARRAY("data", "<f8", "(3,)", infinite), {-INFINITY, INFINITY, 2}},
      /* not a type of values: the text of NumPy, which older versions of SciPy write */
      {{"format.npy", "<U3", "()", "c\0\0\0s\0\0\0r\0\0\0", 12}, {5, 1, -2.5F}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HOLD(wlmi_csr_host, a, wlmi_input_read(write_changed(csr, &cases[i].data), &a));
    check(&a, cases[i].expected);
  }
}

static const double too_large[] = {1e39, 1, 1};
static const int64_t far[] = {1, 3, 0}, below[] = {1, -1, 0}, wrapped[] = {1, 4294967298, 0};
static const int64_t falling[] = {0, 4, 3}, down[] = {0, 2, 1}, late[] = {1, 2, 3}, early[] = {0, 1, 2};
#define NONE(name) \
  { name ".npy", NULL, NULL, NULL, 0 }

static const struct {
  array other;
  wlm_status status;
  const char *what;
} bad[] = {
    {NONE("format"), WLM_ERR_PARSE, "format.npy: the file has no such array"},
    {{"format.npy", "|S3", "()", "bsr", 3}, WLM_ERR_UNSUPPORTED, "format 'bsr' is not supported"},
    {{"format.npy", "<U3", "()", "b\0\0\0s\0\0\0r\0\0\0", 12}, WLM_ERR_UNSUPPORTED, "format 'bsr' is not supported"},
    {{"format.npy", "|S9", "()", "something", 9}, WLM_ERR_UNSUPPORTED, "format.npy: elements of type 'S9'"},
    {{"format.npy", "<i4", "()", row, 4}, WLM_ERR_UNSUPPORTED, "where a short text"},
    {NONE("shape"), WLM_ERR_PARSE, "shape.npy: the file has no such array"},
    {{"shape.npy", "<i8", "(1,)", shape, 8}, WLM_ERR_PARSE, "two axes"},
    {ARRAY("shape", "<i8", "(2,)", huge), WLM_ERR_PARSE, "entry 0 is 2147483648; it must be 0 to 2147483647"},
    {ARRAY("shape", "<i8", "(2,)", negative), WLM_ERR_PARSE, "entry 0 is -1"},
    {NONE("data"), WLM_ERR_PARSE, "data.npy: the file has no such array"},
    {ARRAY("data", "<c8", "(3,)", shape), WLM_ERR_UNSUPPORTED, "'<c8' are not supported"},
    {ARRAY("data", ">f4", "(3,)", value), WLM_ERR_UNSUPPORTED, "'>f4' are not supported"},
    {ARRAY("data", "|O8", "(3,)", rowptr), WLM_ERR_UNSUPPORTED, "'|O8' are not supported"},
    {ARRAY("data", "<f3", "(3,)", "123456789"), WLM_ERR_PARSE, "size in bytes differ"},
    {ARRAY("data", "<f4", "(4,)", value), WLM_ERR_PARSE, "size in bytes differ"},
    {ARRAY("data", "<f4", "(1000000000000,)", value), WLM_ERR_PARSE, "size in bytes differ"},
    {ARRAY("data", "<f4", "(4611686018427387904, 4)", value), WLM_ERR_PARSE, "another form"},
    {ARRAY("data", "<f4", "(3", value), WLM_ERR_PARSE, "another form"},
    {ARRAY("data", "<f4", "(-3,)", value), WLM_ERR_PARSE, "another form"},
    {ARRAY("data", "<f4", "(1, 3)", value), WLM_ERR_PARSE, "one axis"},
    {ARRAY("data", "<f8", "(3,)", too_large), WLM_ERR_PARSE, "data.npy: entry 0 is beyond the range of float; scale"},
    {ARRAY("indices", "<i8", "(3,)", far), WLM_ERR_PARSE, "indices.npy: entry 1 is 3; it must be 0 to 2"},
    {ARRAY("indices", "<i8", "(3,)", below), WLM_ERR_PARSE, "indices.npy: entry 1 is -1"},
    {ARRAY("indices", "<i8", "(3,)", wrapped), WLM_ERR_PARSE, "indices.npy: entry 1 is 4294967298"},
    {ARRAY("indices", "<f4", "(3,)", value), WLM_ERR_UNSUPPORTED, "where integers are needed"},
    {ARRAY("indices", "<i8", "(2,)", shape), WLM_ERR_PARSE, "2 entries for 3 values"},
    {ARRAY("indptr", "<i8", "(2,)", shape), WLM_ERR_PARSE, "2 entries where the shape asks for 3"},
    {ARRAY("indptr", "<i8", "(3,)", falling), WLM_ERR_PARSE, "indptr.npy: entry 1 is 4; it must be 0 to 3"},
    {ARRAY("indptr", "<i8", "(3,)", down), WLM_ERR_PARSE, "entry 2 is less than the one before it"},
    {ARRAY("indptr", "<i8", "(3,)", late), WLM_ERR_PARSE, "goes from 1 to 3 for 3 values"},
    {ARRAY("indptr", "<i8", "(3,)", early), WLM_ERR_PARSE, "goes from 0 to 2 for 3 values"},
};

TEST(bad_arrays) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wlmi_csr_host a = {.rows = 7};
    const wlm_status status = wlmi_input_read(write_changed(csr, &bad[i].other), &a);
    if (status != bad[i].status) fail_msg("case %zu: %s (%s)", i, wlm_status_name(status), wlm_error_detail());
    assert_contains(wlm_error_detail(), folder.file);
    assert_contains(wlm_error_detail(), bad[i].what);
    assert_int_equal(a.rows, 0);
  }
}

TEST(arrays_that_are_none) {
  static const char *const texts[] = {"", "\x93NUMPY", "\x93NUMPY\7\0\1\0 ", "\x93NUMPY\1\0\377\377 ", "{}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    npz_writer writer;
    wlmi_csr_host a;
    npz_begin(&writer, folder_file(&folder, "a.npz"), 0);
    npz_file(&writer, "format.npy", texts[i], i < 2 ? strlen(texts[i]) : 11);
    npz_end(&writer);
    assert_fails(WLM_ERR_PARSE, wlmi_input_read(folder.file, &a), "a.npz: format.npy: ");
  }
}

TEST(archives_of_other_files) {
  npz_writer writer;
  wlmi_csr_host a;
  npz_begin(&writer, folder_file(&folder, "a.zip"), 9);
  npz_file(&writer, "a.mtx", "%%MatrixMarket", 14);
  npz_file(&writer, "readme.html", "x", 1);
  npz_end(&writer);
  assert_fails(WLM_ERR_UNSUPPORTED, wlmi_input_read(folder.file, &a),
               "a.zip: a zip archive without arrays of NumPy; unpack it");
}

/* A byte that is changed or missing is noticed: each array has a checksum. */
TEST(damaged_files) {
  size_t size;
  FREED unsigned char *bytes = read_whole(write_arrays(csr, 9), &size);
  wlmi_csr_host a;
  for (size_t cut = 4; cut < size; cut++) {
    write_whole(folder_file(&folder, "cut.npz"), bytes, cut);
    assert_status(WLM_ERR_PARSE, wlmi_input_read(folder.file, &a));
  }
  for (size_t i = 4; i < size; i++) {
    bytes[i] ^= 0x55;
    write_whole(folder_file(&folder, "flip.npz"), bytes, size);
    if (wlmi_input_read(folder.file, &a) == WLM_OK) { /* times and attributes mean nothing here */
      check(&a, (const float[]){5, 1, -2.5F});
      wlmi_csr_host_release(&a);
    }
    bytes[i] ^= 0x55;
  }
}

static wlm_status refuse(void *user, int64_t rows, int64_t cols, int64_t nnz) {
  (void)user;
  assert_int_equal(rows, 2);
  assert_int_equal(cols, 3);
  assert_int_equal(nnz, 3);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "too large");
}

TEST(the_size_is_checked) {
  wlmi_csr_host a;
  assert_status(WLM_ERR_OUT_OF_MEMORY,
                wlmi_input_read_checked(write_arrays(csr, 0), &(wlmi_size_check){refuse, NULL}, &a));
}

TEST(empty_matrices) {
  static const int64_t nothing[2] = {0, 0};
  static const array empty[ARRAYS] = {{"format.npy", "|S3", "()", "csr", 3},
                                      ARRAY("shape", "<i8", "(2,)", nothing),
                                      {"data.npy", "<f4", "(0,)", NULL, 0},
                                      {"indices.npy", "<i4", "(0,)", NULL, 0},
                                      {"indptr.npy", "<i8", "(1,)", nothing, 8}};
  HOLD(wlmi_csr_host, a, wlmi_input_read(write_arrays(empty, 0), &a));
  assert_int_equal(a.rows + a.cols + a.nnz, 0);
}

GROUP(folder_begin, folder_end)
