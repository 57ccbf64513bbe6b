/* Matrix Market: which files are read and which refused, with the line of the error. */
#include <zlib.h>

#include "core/csr/lines.h"
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/folder.h"
#include "support/test.h"

#define BANNER(kind) "%%MatrixMarket matrix coordinate " kind "\n"

static wlm_status read_text(const char *text, wlmi_csr_host *csr) {
  const char *path = folder_file(&folder, "a.mtx");
  write_whole(path, text, strlen(text));
  return wlmi_input_read(path, csr);
}

/* ---- valid files ---- */

/* Prints the matrix as "rows x cols: row,column=value ..."; a pattern has no "=value". */
static void describe(const wlmi_csr_host *csr, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%lldx%lld:", (long long)csr->rows, (long long)csr->cols);
  for (int64_t r = 0; r < csr->rows; r++)
    for (int64_t i = csr->rowptr[r]; i < csr->rowptr[r + 1]; i++) {
      used += (size_t)snprintf(text + used, size - used, " %lld,%d", (long long)r, csr->colind[i]);
      if (csr->values) used += (size_t)snprintf(text + used, size - used, "=%.9g", (double)csr->values[i]);
    }
}

static const struct {
  const char *text, *matrix;
} good[] = {
    {BANNER("pattern general") "2 3 3\n2 1\n1 3\n1 1\n", "2x3: 0,0 0,2 1,0"},
    {BANNER("real general") "2 2 2\n1 2 -1.5\n2 1 .25e1\n", "2x2: 0,1=-1.5 1,0=2.5"},
    {BANNER("integer general") "2 2 2\n1 2 -7\n2 2 16777217\n", "2x2: 0,1=-7 1,1=16777216"},
    {BANNER("real symmetric") "3 3 3\n1 1 1\n2 1 2\n3 2 3\n", "3x3: 0,0=1 0,1=2 1,0=2 1,2=3 2,1=3"},
    {BANNER("pattern symmetric") "2 2 1\n1 2\n", "2x2: 0,1 1,0"},
    {BANNER("real skew-symmetric") "2 2 1\n2 1 4\n", "2x2: 0,1=-4 1,0=4"},
    {BANNER("real general") "2 2 3\n1 1 1\n1 1 2\n2 2 0\n", "2x2: 0,0=3 1,1=0"},
    {BANNER("pattern general") "1 2 3\n1 1\n1 2\n1 1\n", "1x2: 0,0=2 0,1=1"},
    {"%%matrixmarket MATRIX Coordinate Real GENERAL\n1 1 1\n1 1 5\n", "1x1: 0,0=5"},
    {BANNER("real general") "% a comment\n\n%\n  %%another\n\t1 \t1  1  \n\n \t\n 1\t1 \t5 \t\n\n  \n", "1x1: 0,0=5"},
    {"%%MatrixMarket matrix coordinate real general\r\n%\r\n\r\n1 1 1\r\n1 1 5\r\n", "1x1: 0,0=5"},
    {BANNER("real general") "1 1 1\n1 1 5", "1x1: 0,0=5"},
    {BANNER("real general") "0 0 0\n", "0x0:"},
    {BANNER("real general") "3 2 0\n", "3x2:"},
    {BANNER("real general") "01 +2 1\n+1 002 +5.0E+00\n", "1x2: 0,1=5"},
    /* other programs: SciPy, Fortran, printf */
    {BANNER("unsigned-integer general") "2 2 2\n1 2 7\n2 2 18446744073709551615\n", "2x2: 0,1=7 1,1=1.84467441e+19"},
    {BANNER("real general") "1 3 3\n1 1 1d0\n1 2 -2D+00\n1 3 1.5D+02\n", "1x3: 0,0=1 0,1=-2 0,2=150"},
    {BANNER("real general") "1 4 4\n1 1 NaN\n1 2 Inf\n1 3 -inf\n1 4 infinity\n",
     "1x4: 0,0=nan 0,1=inf 0,2=-inf 0,3=inf"},
    {BANNER("real general") "1 1 2\n1 1 inf\n1 1 -inf\n", "1x1: 0,0=-nan"},
    {BANNER("real hermitian") "2 2 1\n2 1 4\n", "2x2: 0,1=4 1,0=4"},
    {"%%MatrixMarket matrix coordinate real general\r%\r1 1 1\r1 1 5\r", "1x1: 0,0=5"},
    {"%%MatrixMarket matrix coordinate real general\r\r\n1 1 1\r\n1 1 5\r", "1x1: 0,0=5"},
};

/* What stands before the banner and how it is spelled: all are read, under any name. */
static const char *const banners[] = {"%MatrixMarket",
                                      "\xEF\xBB\xBF%%MatrixMarket",
                                      "\n%%MatrixMarket",
                                      " \t\n\r\n%%MatrixMarket",
                                      "  %%MatrixMarket",
                                      "%%matrixmarket",
                                      "%%MATRIXMARKET",
                                      "%% MatrixMarket",
                                      "MatrixMarket",
                                      "#MatrixMarket",
                                      "% of a program\n\n%%MatrixMarket",
                                      "\xEF\xBB\xBF\n % a\n%MatrixMarket",
                                      "\r\r%%MatrixMarket"};
static const char *const names[] = {"a.mtx", "a.txt", "a.csv", "a", "a.mtx.gz", "a.gz"};

static void write_gzip(const char *path, const void *data, size_t size) {
  gzFile file = gzopen(path, "wb");
  assert_int_equal(gzwrite(file, data, (unsigned)size), (int)size);
  assert_int_equal(gzclose(file), Z_OK);
}

TEST(banners_of_other_spelling) {
  for (size_t i = 0; i < sizeof banners / sizeof *banners; i++)
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      char text[200];
      HELD(wlmi_csr_host) csr;
      snprintf(text, sizeof text, "%s matrix coordinate real general\n3 3 2\n1 1 1.5\n2 3 -2\n", banners[i]);
      folder_file(&folder, names[k]);
      (strstr(names[k], ".gz") ? write_gzip : write_whole)(folder.file, text, strlen(text));
      if (wlmi_input_read(folder.file, &csr) != WLM_OK) fail_msg("%s: %s", banners[i], wlm_error_detail());
      assert_true(csr.rows == 3 && csr.nnz == 2 && csr.colind[1] == 2);
    }
}

TEST(good_files) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    char text[400];
    HOLD(wlmi_csr_host, csr, read_text(good[i].text, &csr));
    assert_csr(&csr);
    describe(&csr, text, sizeof text);
    assert_string_equal(text, good[i].matrix);
  }
}

/* ---- invalid files ---- */

#define REAL BANNER("real general")
static const struct {
  const char *text;
  wlm_status status;
  const char *where, *what;
} bad[] = {
    {"", WLM_ERR_PARSE, ":1:", "empty"},
    {"hello\n", WLM_ERR_PARSE, ":1:", "hello"},
    {"1 1 1\n1 1 1\n", WLM_ERR_PARSE, ":1:", "must begin with"},
    {"%%MatrixMarket\n", WLM_ERR_PARSE, ":1:", "object"},
    {"%%MatrixMarket matrix coordinate real\n1 1 0\n", WLM_ERR_PARSE, ":1:", "symmetry"},
    {"%%MatrixMarket matrix coordinate real general extra\n1 1 0\n", WLM_ERR_PARSE, ":1:", "extra"},
    {"%%MatrixMarket tensor coordinate real general\n", WLM_ERR_PARSE, ":1:", "tensor"},
    {BANNER("quaternion general"), WLM_ERR_PARSE, ":1:", "quaternion"},
    {"%%MatrixMarket vector coordinate real general\n", WLM_ERR_UNSUPPORTED, ":1:", "vector"},
    {"%%MatrixMarket matrix array real general\n1 1\n1\n", WLM_ERR_UNSUPPORTED, ":1:", "array"},
    {BANNER("complex general") "1 1 1\n1 1 1 0\n", WLM_ERR_UNSUPPORTED, ":1:", "complex"},
    {BANNER("complex hermitian") "1 1 0\n", WLM_ERR_UNSUPPORTED, ":1:", "complex"},
    {"\n% a\n%MatrixMarket matrix array real general\n", WLM_ERR_UNSUPPORTED, ":3:", "array"},
    {"%MatrixMarket\n1 1 0\n", WLM_ERR_PARSE, ":1:", "object"},
    {BANNER("pattern skew-symmetric") "2 2 1\n2 1\n", WLM_ERR_UNSUPPORTED, ":1:", "skew-symmetric"},
    {REAL, WLM_ERR_PARSE, ":1:", "size line"},
    {REAL "% only\n% comments\n", WLM_ERR_PARSE, ":3:", "size line"},
    {REAL "2 2\n1 1 1\n", WLM_ERR_PARSE, ":2:", "number of entries is missing"},
    {REAL "2 2 1 1\n1 1 1\n", WLM_ERR_PARSE, ":2:", "'1' after"},
    {REAL "%\n2 x 1\n1 1 1\n", WLM_ERR_PARSE, ":3:", "'x' is not an integer"},
    {REAL "-2 2 1\n", WLM_ERR_PARSE, ":2:", "-2 is out of range"},
    {REAL "2 2 -1\n", WLM_ERR_PARSE, ":2:", "-1 is out of range"},
    {REAL "2.0 2 1\n", WLM_ERR_PARSE, ":2:", "'2.0' is not an integer"},
    {REAL "2 2147483648 1\n", WLM_ERR_PARSE, ":2:", "2147483648 is out of range"},
    {REAL "2147483648 2 1\n", WLM_ERR_PARSE, ":2:", "2147483648 is out of range"},
    {REAL "2 2 99999999999999999999\n", WLM_ERR_PARSE, ":2:", "not an integer of 64 bits"},
    {BANNER("real symmetric") "2 3 1\n", WLM_ERR_PARSE, ":2:", "cannot be symmetric"},
    {BANNER("real skew-symmetric") "2 3 1\n", WLM_ERR_PARSE, ":2:", "cannot be symmetric"},
    {REAL "2 2 2\n1 1 1\n", WLM_ERR_PARSE, ":3:", "after 1 of 2"},
    {REAL "2 2 2\n\n1 1 1\n\n\n", WLM_ERR_PARSE, ":6:", "after 1 of 2"},
    {REAL "2 2 1000000000000\n1 1 1\n", WLM_ERR_PARSE, ":3:", "after 1 of 1000000000000"},
    {REAL "2 2 1\n1 1 1\n2 2 1\n", WLM_ERR_PARSE, ":4:", "more than the 1 entries"},
    {REAL "2 2 0\n2 2 1\n", WLM_ERR_PARSE, ":3:", "more than the 0 entries"},
    {REAL "2 2 1\n3 1 1\n", WLM_ERR_PARSE, ":3:", "row 3 is out of range; it must be 1 to 2"},
    {REAL "2 2 1\n0 1 1\n", WLM_ERR_PARSE, ":3:", "row 0"},
    {REAL "2 2 1\n1 -1 1\n", WLM_ERR_PARSE, ":3:", "column -1"},
    {REAL "2 3 1\n1 4 1\n", WLM_ERR_PARSE, ":3:", "column 4 is out of range; it must be 1 to 3"},
    {REAL "2 2 1\n1 4294967297 1\n", WLM_ERR_PARSE, ":3:", "column 4294967297"},
    {REAL "2 2 1\n1 99999999999999999999 1\n", WLM_ERR_PARSE, ":3:", "not an integer"},
    {REAL "2 2 1\n1 1\n", WLM_ERR_PARSE, ":3:", "value is missing"},
    {REAL "2 2 1\n1\n", WLM_ERR_PARSE, ":3:", "column is missing"},
    {REAL "2 2 1\n1 1 1 1\n", WLM_ERR_PARSE, ":3:", "'1' after"},
    {REAL "2 2 1\n1 1 1 % note\n", WLM_ERR_PARSE, ":3:", "'%' after"},
    {REAL "2 2 1\n1 1 1.0x\n", WLM_ERR_PARSE, ":3:", "'1.0x' is not a number"},
    {REAL "2 2 1\n1 1 one\n", WLM_ERR_PARSE, ":3:", "'one' is not a number"},
    {REAL "2 2 1\n1 1 nano\n", WLM_ERR_PARSE, ":3:", "'nano'"},
    {REAL "2 2 1\n1 1 1d39\n", WLM_ERR_PARSE, ":3:", "range of float"},
    {REAL "2 2 1\n1 1\r1\n", WLM_ERR_PARSE, ":3:", "value is missing"},
    {REAL "2 2 1\n1 1 1,5\n", WLM_ERR_PARSE, ":3:", "'1,5'"},
    {REAL "2 2 1\n1 1 1e39\n", WLM_ERR_PARSE, ":3:", "range of float"},
    {REAL "2 2 1\n1.5 1 1\n", WLM_ERR_PARSE, ":3:", "row '1.5'"},
    {REAL "2 2 1\na 1 1\n", WLM_ERR_PARSE, ":3:", "row 'a'"},
    {BANNER("pattern general") "2 2 1\n1 1 1\n", WLM_ERR_PARSE, ":3:", "'1' after"},
    {BANNER("integer general") "2 2 1\n1 1 2.5\n", WLM_ERR_PARSE, ":3:", "'2.5' is not an integer"},
    {BANNER("integer general") "2 2 1\n1 1 nan\n", WLM_ERR_PARSE, ":3:", "'nan' is not an integer"},
    {BANNER("unsigned-integer general") "2 2 1\n1 1 -1\n", WLM_ERR_PARSE, ":3:", "'-1' is not an unsigned-integer"},
    {BANNER("integer general") "2 2 1\n1 1\n", WLM_ERR_PARSE, ":3:", "value is missing"},
    {BANNER("real skew-symmetric") "2 2 1\n2 2 1\n", WLM_ERR_PARSE, ":3:", "diagonal"},
};

TEST(bad_files) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char place[400];
    wlmi_csr_host csr = {.rows = 7};
    wlm_status status = read_text(bad[i].text, &csr);
    if (status != bad[i].status)
      fail_msg("case %zu: %s (%s)\n%s", i, wlm_status_name(status), wlm_error_detail(), bad[i].text);
    snprintf(place, sizeof place, "%s%s", folder.file, bad[i].where);
    assert_contains(wlm_error_detail(), place);
    assert_contains(wlm_error_detail(), bad[i].what);
    assert_contains(wlm_error_detail(), ";"); /* the message goes on with what to do */
    assert_int_equal(csr.rows, 0);
  }
}

TEST(nul_byte_is_not_text) {
  static const char text[] = BANNER("real general") "1 1 1\n1 1\0 1\n";
  wlmi_csr_host csr;
  write_whole(folder_file(&folder, "nul.mtx"), text, sizeof text - 1);
  assert_fails(WLM_ERR_PARSE, wlmi_input_read(folder.file, &csr), "nul.mtx:3: a NUL byte");
}

TEST(files_that_cannot_be_read) {
  wlmi_csr_host csr;
  assert_fails(WLM_ERR_NOT_FOUND, wlmi_input_read(folder_file(&folder, "missing.mtx"), &csr), "missing.mtx");
  assert_contains(wlm_error_detail(), "No such file");
  assert_fails(WLM_ERR_IO, wlmi_input_read(folder.path, &csr), "directory");
}

/* ---- long files and long lines ---- */

enum { MANY = 60000 };

/* Makes entry i of a matrix that is larger than several read buffers. */
static void entry_of(int i, int *row, int *col, int *value) {
  *row = i % 1000 + 1;
  *col = (int)((unsigned)i * 7919u % 5000u) + 1;
  *value = i % 50;
}

static char *many_entries(size_t *size) {
  char *text = malloc(64 + MANY * 24);
  size_t used = (size_t)sprintf(text, "%s1000 5000 %d\n", BANNER("real general"), MANY);
  for (int i = 0; i < MANY; i++) {
    int row, col, value;
    entry_of(i, &row, &col, &value);
    used += (size_t)sprintf(text + used, "%d %d %d.5\n", row, col, value);
  }
  *size = used;
  return text;
}

static void check_many(const wlmi_csr_host *csr) {
  double sum = 0, expected = 0, weighted = 0, expected_weighted = 0;
  for (int i = 0; i < MANY; i++) {
    int row, col, value;
    entry_of(i, &row, &col, &value);
    expected += value + 0.5;
    expected_weighted += (value + 0.5) * row * col;
  }
  for (int64_t r = 0; r < csr->rows; r++)
    for (int64_t i = csr->rowptr[r]; i < csr->rowptr[r + 1]; i++) {
      sum += (double)csr->values[i];
      weighted += (double)csr->values[i] * (double)(r + 1) * (double)(csr->colind[i] + 1);
    }
  assert_true(sum == expected && weighted == expected_weighted);
}

TEST(plain_and_gzip_are_the_same) {
  size_t size;
  FREED char *text = many_entries(&size);
  assert_true(size > 3 * WLMI_LINES_BUFFER);
  write_whole(folder_file(&folder, "many.mtx"), text, size);
  HOLD(wlmi_csr_host, csr, wlmi_input_read(folder.file, &csr));
  check_many(&csr);
  wlmi_csr_host_release(&csr);
  write_gzip(folder_file(&folder, "many.mtx.gz"), text, size);
  assert_status(WLM_OK, wlmi_input_read(folder.file, &csr));
  check_many(&csr);
}

TEST(damaged_gzip_is_reported) {
  size_t size, gz_size;
  FREED char *text = many_entries(&size);
  HELD(wlmi_csr_host) csr;
  write_gzip(folder_file(&folder, "many.mtx.gz"), text, size);
  FREED unsigned char *gz = read_whole(folder.file, &gz_size);
  const size_t cuts[] = {3, 5, gz_size / 2, gz_size - 9, gz_size - 1};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    write_whole(folder_file(&folder, "cut.mtx.gz"), gz, cuts[i]);
    wlm_status status = wlmi_input_read(folder.file, &csr);
    if (status != WLM_ERR_IO) fail_msg("cut to %zu: %s", cuts[i], wlm_error_detail());
    assert_contains(wlm_error_detail(), "damaged gzip data");
  }
  const size_t spots[] = {0, gz_size / 3, gz_size / 2, gz_size - 6, gz_size - 2};
  for (size_t i = 0; i < sizeof spots / sizeof *spots; i++) {
    gz[spots[i]] ^= 0x55;
    write_whole(folder_file(&folder, "flip.mtx.gz"), gz, gz_size);
    wlm_status status = wlmi_input_read(folder.file, &csr);
    /* Without its first byte the file is not gzip; a missing byte in the middle may show as a malformed line. */
    if (status != WLM_ERR_IO && !(status == WLM_ERR_PARSE && i < 3))
      fail_msg("byte %zu flipped: %s (%s)", spots[i], wlm_status_name(status), wlm_error_detail());
    gz[spots[i]] ^= 0x55;
  }
  write_whole(folder_file(&folder, "plain.mtx.gz"), text, size); /* the name says gzip, but the contents decide */
  assert_status(WLM_OK, wlmi_input_read(folder.file, &csr));
}

/* Only comments may be longer than the buffer; what follows them is read. */
TEST(long_lines) {
  static const size_t lengths[] = {WLMI_LINES_BUFFER - 3, WLMI_LINES_BUFFER - 2, WLMI_LINES_BUFFER - 1,
                                   WLMI_LINES_BUFFER,     WLMI_LINES_BUFFER + 1, 5 * WLMI_LINES_BUFFER / 2};
  static const char *const ends[] = {"\n", "\r\n", "\r"};
  FREED char *text = malloc(3 * WLMI_LINES_BUFFER);
  wlmi_csr_host csr;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths * 3; i++) {
    size_t used = (size_t)sprintf(text, "%s", BANNER("real general"));
    memset(text + used, '%', lengths[i / 3]);
    used += lengths[i / 3];
    used += (size_t)sprintf(text + used, "%s1 1 1\n1 1 5\n", ends[i % 3]);
    write_whole(folder_file(&folder, "long.mtx"), text, used);
    assert_status(WLM_OK, wlmi_input_read(folder.file, &csr));
    assert_int_equal(csr.nnz, 1);
    wlmi_csr_host_release(&csr);
    text[strlen(BANNER("real general"))] = '1';
    write_whole(folder.file, text, used);
    assert_status(WLM_ERR_PARSE, wlmi_input_read(folder.file, &csr));
    assert_contains(wlm_error_detail(),
                    lengths[i / 3] < WLMI_LINES_BUFFER - 1 ? "'1%%" : "long.mtx:2: a line of more than");
  }
}

/* Packed files and others that are no matrix: what they are and what to do, also under the name of a matrix and in
 * gzip. */
static const struct {
  const char *bytes;
  size_t size;
  const char *said;
} packed[] = {
#define BYTES(text) text, sizeof(text) - 1
    {BYTES("BZh91AY&SY"), "compressed by bzip2; unpack it by bunzip2"},
    {BYTES("\xFD"
           "7zXZ\0"),
     "compressed by xz; unpack it by unxz"},
    {BYTES("\x28\xB5\x2F\xFD\x24"), "compressed by zstd; unpack it"},
    {BYTES("\x93NUMPY\1\0"), "an array of NumPy; save a sparse matrix by scipy.sparse.save_npz"},
    {BYTES("\xFF\xFE%\0%\0M\0"), "text in UTF-16; convert it by iconv"},
    {BYTES("\xFE\xFF\0%\0%\0M"), "text in UTF-16; convert it by iconv"},
    {BYTES("%\0%\0M\0"), "a NUL byte; give a text in UTF-8"},
    {BYTES("\x89HDF\r\n\x1A\n"), "HDF5; "},
    {BYTES("MATLAB 5.0 MAT-file, Platform"), "a file of MATLAB; "},
    {BYTES("SQLite format 3"), "a database and no matrix; commands take it as --db"},
    {BYTES("{\"warploom\":\"tuned\",\"version\":1}\n"), "a file of warploom export and no matrix; "},
    {BYTES("<!DOCTYPE html>"), "HTML or XML, "},
    {BYTES("7z\xBC\xAF\x27\x1C"), "a 7-Zip archive; unpack it"},
};

static void refuse_bytes(const char *name, const void *bytes, size_t size, const char *said) {
  for (int is_packed = 0; is_packed < 2; is_packed++) {
    wlmi_csr_host csr = {.rows = 7};
    (is_packed ? write_gzip : write_whole)(folder_file(&folder, name), bytes, size);
    const wlm_status status = wlmi_input_read(folder.file, &csr);
    if (status == WLM_OK || csr.rows) fail_msg("%s: was read", said);
    assert_contains(wlm_error_detail(), folder.file);
    assert_contains(wlm_error_detail(), said);
  }
}

TEST(packed_files_say_what_to_do) {
  char tar[512] = "suite/a.mtx";
  memcpy(tar + 257, "ustar", 5);
  refuse_bytes("suite.tar", tar, sizeof tar, "a tar archive; unpack it by tar -xf");
  for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
    refuse_bytes("a.mtx", packed[i].bytes, packed[i].size, packed[i].said);
    refuse_bytes("a", packed[i].bytes, packed[i].size, packed[i].said);
  }
}

GROUP(folder_begin, folder_end)
