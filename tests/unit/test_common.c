/* core/: status, text, memory, program sizes, spec. */
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/strings.h"
#include "core/problem/program.h"
#include "core/problem/spec.h"
#include "core/problem/spec_key.h"
#include "support/command.h"
#include "support/meter.h"
#include "support/test.h"

/* ---- status ------------------------------------------------------------------------------------- */

TEST(statuses) {
#define CHECK(name, message)                                      \
  assert_string_equal(wlm_status_name(WLM_##name), "WLM_" #name); \
  assert_string_equal(wlm_status_message(WLM_##name), message);
  WLM_STATUS_MAP(CHECK)
#undef CHECK
  assert_int_equal(WLM_OK, 0);
  assert_int_equal(WLM_ERR_INTERNAL, 18); /* the values of statuses never change */
  assert_string_equal(wlm_status_name((wlm_status)999), "WLM_ERR_UNKNOWN");
  assert_string_equal(wlm_status_name((wlm_status)-1), "WLM_ERR_UNKNOWN");
  assert_string_equal(wlm_status_message((wlm_status)999), "unknown status");
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", WLM_VERSION_MAJOR, WLM_VERSION_MINOR, WLM_VERSION_PATCH);
  assert_string_equal(wlm_version_string(), version);
  assert_int_equal(wlm_version(), WLM_VERSION_MAJOR * 10000 + WLM_VERSION_MINOR * 100 + WLM_VERSION_PATCH);
}

static void *other_thread(void *user) {
  (void)user;
  const char *empty = *wlm_error_detail() ? "not empty" : NULL;
  wlmi_fail(WLM_ERR_IO, "other");
  return (void *)empty;
}

TEST(details) {
  assert_int_equal(wlmi_fail(WLM_ERR_IO, "%s: %d", "file", 7), WLM_ERR_IO);
  assert_string_equal(wlm_error_detail(), "file: 7");
  assert_int_equal(wlmi_fail_in(WLM_ERR_PARSE, "line %d", 3), WLM_ERR_PARSE);
  assert_string_equal(wlm_error_detail(), "line 3: file: 7");
  pthread_t thread;
  void *fault;
  assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
  assert_int_equal(pthread_join(thread, &fault), 0);
  assert_null(fault);
  assert_string_equal(wlm_error_detail(), "line 3: file: 7"); /* each thread has its own detail */
  char long_text[10000];
  memset(long_text, 'x', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = 0;
  wlmi_fail(WLM_ERR_IO, "%s", long_text);
  for (int i = 0; i < 20; i++) wlmi_fail_in(WLM_ERR_IO, "%s", long_text);
  assert_in_range(strlen(wlm_error_detail()), 1000, 9999); /* a long detail is cut */
  wlmi_clear_error();
  assert_string_equal(wlm_error_detail(), "");
}

static void log_line(void *user, wlm_log_level level, const char *message) {
  snprintf(user, 64, "%d %s", level, message);
}

TEST(logging) {
  char heard[64] = "";
  wlmi_log(WLM_LOG_ERROR, "silence is the default");
  wlm_set_log(log_line, heard, WLM_LOG_WARNING);
  wlmi_log(WLM_LOG_INFO, "not for us");
  assert_string_equal(heard, "");
  wlmi_log(WLM_LOG_WARNING, "%s %d", "number", 5);
  assert_string_equal(heard, "1 number 5");
  wlm_set_log(NULL, NULL, WLM_LOG_DEBUG);
  wlmi_log(WLM_LOG_ERROR, "silent again");
  assert_string_equal(heard, "1 number 5");
}

/* ---- text ----------------------------------------------------------------------------------------- */

TEST(texts) {
  wlmi_text text = {0};
  char *taken, expected[5001];
  for (int i = 0; i < 1000; i++) wlmi_text_printf(&text, "%05d", i);
  for (int i = 0; i < 1000; i++) snprintf(expected + 5 * i, 6, "%05d", i);
  assert_int_equal(text.size, 5000);
  assert_int_equal(wlmi_text_take(&text, &taken), WLM_OK);
  assert_string_equal(taken, expected);
  assert_null(text.data);
  wlmi_free(taken);
  assert_int_equal(wlmi_text_take(&text, &taken), WLM_OK); /* take gives "" if nothing was appended */
  assert_string_equal(taken, "");
  wlmi_free(taken);
}

TEST(json_values) {
  HELD(wlmi_text) text = {0};
  for (int line = 0; line < 2; line++) {
    wlmi_json_open(&text, NULL, '{');
    wlmi_json_string(&text, "s{", "{[:,");
    wlmi_json_open(&text, "list", '[');
    wlmi_json_integer(&text, NULL, -1);
    wlmi_json_real(&text, NULL, "%.2f", 0.5);
    wlmi_json_real(&text, NULL, "%.2f", (double)NAN);
    wlmi_json_open(&text, NULL, '{');
    wlmi_json_members(&text, line ? "\"a\":1" : NULL);
    wlmi_json_close(&text, '}');
    wlmi_json_close(&text, ']');
    wlmi_json_raw(&text, "last", "true");
    wlmi_json_members(&text, "");
    wlmi_json_close(&text, '}');
    wlmi_text_puts(&text, "\n");
  }
  assert_string_equal(text.data,
                      "{\"s{\":\"{[:,\",\"list\":[-1,0.50,null,{}],\"last\":true}\n"
                      "{\"s{\":\"{[:,\",\"list\":[-1,0.50,null,{\"a\":1}],\"last\":true}\n");
}

TEST(json_strings) {
  static const struct {
    const char *string, *json;
  } cases[] = {
      {"", "\"\""},
      {"plain", "\"plain\""},
      {"quote \" back \\ slash /", "\"quote \\\" back \\\\ slash /\""},
      {"\n\t\r", "\"\\n\\t\\r\""},
      {"\x01\x1f", "\"\\u0001\\u001f\""},
      {"\xc3\xa9 stays", "\"\xc3\xa9 stays\""},
      {NULL, "null"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) text = {0};
    wlmi_text_json_string(&text, cases[i].string);
    assert_string_equal(text.data, cases[i].json);
    assert_true(json_is_valid(text.data));
  }
  char all[256];
  for (int c = 1; c < 128; c++) all[c - 1] = (char)c;
  all[127] = 0;
  HELD(wlmi_text) text = {0};
  wlmi_text_json_string(&text, all);
  FREED char *back = json_at(text.data, "$");
  assert_string_equal(back, all);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

TEST(allocators) {
  meter m = {.fail_at = -1};
  meter_begin(&m);
  void *array;
  char *copy = wlmi_strdup("text");
  int *zeros = wlmi_alloc_zero(10, sizeof *zeros);
  assert_int_equal(m.live, 2);
  for (int i = 0; i < 10; i++) assert_int_equal(zeros[i], 0);
  assert_string_equal(copy, "text");
  wlmi_free(copy);
  wlmi_free(zeros);
  wlmi_free(NULL);
  assert_null(wlmi_strdup(NULL));
  assert_int_equal(m.live, 0);
  assert_null(wlmi_alloc_zero(SIZE_MAX / 2, 4));
  assert_fails(WLM_ERR_OVERFLOW, wlmi_alloc_array(INT64_MAX / 2, 8, "things", &array), "things");
  assert_int_equal(wlmi_alloc_array(0, 8, "nothing", &array), WLM_OK);
  assert_non_null(array);
  wlmi_free(array);

  m = (meter){.fail_at = 0};
  assert_fails(WLM_ERR_OUT_OF_MEMORY, wlmi_alloc_array(10, 8, "things", &array), "things");
  wlmi_text text = {0};
  wlmi_text_puts(&text, "lost");
  wlmi_text_printf(&text, "%d", 1);
  assert_true(text.failed);
  assert_int_equal(wlmi_text_take(&text, &copy), WLM_ERR_OUT_OF_MEMORY);
  assert_null(copy);
  assert_int_equal(m.live, 0);
  wlm_set_allocator(NULL);
}

/* If an allocation fails, the text remains a prefix of the whole text, and no memory leaks. */
TEST(texts_without_memory) {
  for (int64_t fail_at = 0; fail_at < 8; fail_at++) {
    meter m = {.fail_at = fail_at};
    meter_begin(&m);
    wlmi_text text = {0};
    char *taken;
    for (int i = 0; i < 200; i++) wlmi_text_printf(&text, "%05d", i);
    int failed = text.failed;
    assert_int_equal(wlmi_text_take(&text, &taken), failed ? WLM_ERR_OUT_OF_MEMORY : WLM_OK);
    wlmi_free(taken);
    assert_int_equal(m.live, 0);
    wlm_set_allocator(NULL);
  }
}

/* ---- program sizes ---------------------------------------------------------------------------------------- */

TEST(pass_blocks) {
  const wlmi_pass rows = {.units = WLMI_UNITS_ROWS, .units_per_block = 4, .columns_per_block = 32};
  const wlmi_pass nnz = {.units = WLMI_UNITS_NNZ, .units_per_block = 1000};
  const wlmi_pass both = {.units = WLMI_UNITS_ROWS_NNZ, .units_per_block = 10};
  const wlmi_pass shares = {.units = WLMI_UNITS_ROWS_NNZ, .units_per_block = 2, .nonzeros_per_unit = 8};
  const wlmi_pass one = {.units = WLMI_UNITS_ONE, .units_per_block = 1};
  const wlmi_pass cols = {.units = WLMI_UNITS_COLS, .units_per_block = 4};
  const wlmi_pass blocks = {.units = WLMI_UNITS_BLOCKS, .units_per_block = 4};
  const struct {
    const wlmi_pass *pass;
    wlmi_extent extent;
    int64_t blocks;
  } cases[] = {
      {&rows, {9, 5, 100, 1}, 3},  {&rows, {0, 5, 0, 1}, 0},    {&rows, {INT64_MAX, 5, 0, 1}, INT64_MAX / 4 + 1},
      {&nnz, {5, 5, 0, 1}, 1}, /* rows without non-zeros must be written as well */
      {&nnz, {5, 5, 1001, 1}, 2},  {&nnz, {0, 5, 0, 1}, 0},     {&both, {5, 5, 16, 1}, 3},
      {&shares, {5, 5, 16, 1}, 4}, {&shares, {5, 5, 17, 1}, 4}, {&shares, {5, 5, 25, 1}, 5},
      {&one, {5, 5, 16, 1}, 1},    {&cols, {0, 9, 0, 1}, 3}, /* C has rows, but the walked matrix has none */
      {&cols, {9, 0, 0, 1}, 0},    {&blocks, {5, 5, 16, 1}, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(wlmi_pass_unit_blocks(cases[i].pass, &cases[i].extent, 9), cases[i].blocks);
  assert_int_equal(wlmi_pass_column_blocks(&rows, 33), 2);
  assert_int_equal(wlmi_pass_column_blocks(&rows, 0), 0);
  assert_int_equal(wlmi_pass_column_blocks(&nnz, 1000), 1);
  assert_int_equal(wlmi_pass_column_blocks(&nnz, 0), 0);
}

/* Up to one wave the number of blocks is a multiple of the multiprocessors; above it, whole waves over all columns.
 * No block has more units than allowed. */
TEST(even_blocks) {
  const wlmi_pass pass = {
      .units = WLMI_UNITS_ROWS_NNZ, .units_per_block = 10, .columns_per_block = 8, .wave = 12, .processors = 4};
  const struct {
    int64_t nnz, n, blocks, each;
  } cases[] = {{0, 8, 4, 1},    {9, 8, 4, 3},     {39, 8, 4, 10},  {40, 8, 8, 6},   {119, 8, 12, 10},
               {120, 8, 24, 6}, {239, 8, 24, 10}, {241, 8, 36, 7}, {39, 16, 4, 10}, {40, 16, 6, 7},
               {60, 16, 12, 6}, {39, 24, 4, 10},  {40, 24, 8, 6},  {39, 32, 6, 7},  {120, 33, 14, 9},
               {39, 96, 4, 10}, {40, 96, 5, 9},   {40, 1000, 5, 9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlmi_extent extent = {1, 1, cases[i].nnz, cases[i].n};
    assert_int_equal(wlmi_pass_unit_blocks(&pass, &extent, 0), cases[i].blocks);
    assert_int_equal(wlmi_pass_units_each(&pass, &extent, 0), cases[i].each);
  }
  assert_int_equal(wlmi_pass_unit_blocks(&pass, &(wlmi_extent){0, 1, 0, 1}, 0), 0);
  const wlmi_pass plain = {.units = WLMI_UNITS_ROWS, .units_per_block = 10};
  assert_int_equal(wlmi_pass_units_each(&plain, &(wlmi_extent){5, 1, 0, 1}, 0), 10);
}

TEST(byte_sizes) {
  const int64_t large = INT64_C(1) << 40;
  wlmi_bytes bytes = {.one = 1, .rows = 2, .nnz = 3, .n = 5, .blocks = 7, .rows_n = 11, .blocks_n = 13, .cols_n = 17};
  wlmi_extent extent = {10, 9, 100, 4};
  GET(size_t, size, wlmi_bytes_size(&bytes, &extent, 6, &size));
  assert_int_equal(size, 1 + 2 * 10 + 3 * 100 + 5 * 4 + 7 * 6 + 11 * 10 * 4 + 13 * 6 * 4 + 17 * 9 * 4);
  extent = (wlmi_extent){.rows = large, .cols = large, .n = large};
  bytes = (wlmi_bytes){.rows_n = 4};
  assert_int_equal(wlmi_bytes_size(&bytes, &extent, 0, &size), WLM_ERR_OVERFLOW);
  bytes = (wlmi_bytes){.cols_n = 4};
  assert_int_equal(wlmi_bytes_size(&bytes, &extent, 0, &size), WLM_ERR_OVERFLOW);
  bytes = (wlmi_bytes){.rows = 4};
  assert_int_equal(wlmi_bytes_size(&bytes, &extent, 0, &size), WLM_OK); /* rows * n is not used, so it may overflow */
  assert_int_equal(size, 4 * large);
  bytes = (wlmi_bytes){.one = 1, .nnz = 1};
  extent = (wlmi_extent){.nnz = INT64_MAX};
  assert_int_equal(wlmi_bytes_size(&bytes, &extent, 0, &size), WLM_ERR_OVERFLOW);
  bytes = (wlmi_bytes){.nnz = 8};
  extent.nnz /= 4;
  assert_int_equal(wlmi_bytes_size(&bytes, &extent, 0, &size), WLM_ERR_OVERFLOW);
}

/* ---- spec --------------------------------------------------------------------------------------------------- */

/* A valid operator, except for its length. */
static const char *long_text(void) {
  static char text[2048] = "init=0;reduce=acc+x";
  while (strlen(text) < 1200) strcat(text, "+x");
  return text;
}

#define SAMPLED   .sampling.sample = WLM_SAMPLE_BUCKET, .sampling.width = 8
#define ATTENTION .operation = WLM_ATTENTION, .transpose = 1, .heads = 2
#define ROWS      .operation = WLM_ATTENTION_ROWS
#define GRADIENT  .operation = WLM_ARGMAX_GRADIENT
#define POSITIONS .want_argmax = 1, .reduce = WLM_MIN
#define MESSAGE   .operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = "sum=relu(b+e)"
#define MANY      CSR(.nnz = (int64_t)INT32_MAX + 1)

/* The detail must name what is wrong. */
TEST(specs) {
#define ROW(status, named, csr, ...) \
  { WLM_##status, named, csr, PROBLEM(.n = 4, ##__VA_ARGS__) }
  static const float values[1];
  const struct {
    wlm_status expected;
    const char *named;
    wlm_csr csr;
    wlm_problem problem;
  } cases[] = {
      ROW(OK, "", CSR()),
      ROW(OK, "", CSR(.rowptr_type = WLM_I64)),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.size", CSR(), .size = offsetof(wlm_problem, score) - 1),
      ROW(ERR_INVALID_ARGUMENT, "wlm_csr.size", CSR(.size = 0)),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.n", CSR(), .n = -1),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.message is 99, which is not in its enum", CSR(), .message = 99),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.reduce is -1,", CSR(), .reduce = (wlm_reduce)-1),
      ROW(ERR_INVALID_ARGUMENT, "wlm_csr.rowptr_type is 7,", CSR(.rowptr_type = 7)),
      ROW(ERR_INVALID_ARGUMENT, "wlm_csr.colind_type is 2,", CSR(.colind_type = 2)),
      ROW(ERR_INVALID_ARGUMENT, "wlm_csr.value_type is 4,", CSR(.value_type = 4)),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.operation is 6,", CSR(), .operation = 6),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.empty is 2,", CSR(), .empty = 2),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.sampling.sample is 4,", CSR(), .sampling.sample = 4),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.sampling.norm is 3,", CSR(), .sampling.norm = 3),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.sampling.width", CSR(), SAMPLED, .sampling.width = 7),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.sampling.width", CSR(), .sampling.sample = WLM_SAMPLE_FASTRAND,
          .sampling.width = 2305),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.sampling.norm", CSR(), .sampling.norm = WLM_NORM_KEPT),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.policy.expected_calls", CSR(), .policy.expected_calls = 0),
      ROW(OK, "", CSR(), .dense_type = WLM_F16),
      ROW(OK, "", CSR(.value_type = WLM_BF16, .values = values), .dense_type = WLM_BF16),
      ROW(OK, "", CSR(.values = values), .dense_type = WLM_BF16),
      ROW(OK, "", CSR(.colind_type = WLM_I64)),
      ROW(ERR_UNSUPPORTED, "wlm_csr: value_type other than dense_type", CSR(.value_type = WLM_F64, .values = values)),
      ROW(ERR_UNSUPPORTED, "wlm_csr: value_type other than dense_type", CSR(.values = values), .dense_type = WLM_F64),
      ROW(ERR_UNSUPPORTED, "wlm_csr: value_type other than dense_type", CSR(.value_type = WLM_BF16, .values = values),
          .dense_type = WLM_F16),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.dense_type is 4,", CSR(), .dense_type = 4),
      ROW(OK, "", CSR(), .transpose = 1),
      ROW(OK, "", CSR(.values = values), .heads = 2),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.heads is 0", CSR(), .heads = 0),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.heads is -2", CSR(), .heads = -2),
      ROW(ERR_INVALID_ARGUMENT, "divide n = 4", CSR(.values = values), .heads = 3),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.heads is 8", CSR(), .heads = 8),
      ROW(ERR_UNSUPPORTED, "no one edge", CSR(), .want_argmax = 1),
      ROW(OK, "", CSR(), POSITIONS, .reduce = WLM_MAX),
      ROW(OK, "", CSR(), GRADIENT, .reduce = WLM_MAX, .b_order = WLM_COLUMN_MAJOR),
      ROW(ERR_UNSUPPORTED, "argmax_gradient needs the reduction max or min", CSR(), GRADIENT),
      ROW(ERR_UNSUPPORTED, "argmax_gradient with an epilogue", CSR(), GRADIENT, .reduce = WLM_MIN, .epilogue.bias = 1),
      ROW(ERR_OVERFLOW, "wlm_problem.argmax_type is i32", MANY, GRADIENT, .reduce = WLM_MIN),
      ROW(ERR_OVERFLOW, "wlm_problem.argmax_type is i32", MANY, POSITIONS),
      ROW(OK, "", MANY, POSITIONS, .argmax_type = WLM_I64),
      ROW(OK, "", MANY, POSITIONS, .argmax_type = WLM_I16),
      ROW(ERR_UNSUPPORTED, "products without transpose", CSR(), POSITIONS, .transpose = 1, .argmax_type = WLM_I16),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.argmax_type is 3,", CSR(), .argmax_type = 3),
      ROW(OK, "", CSR(), .epilogue.bias = 1),
      ROW(OK, "", CSR(), .epilogue.activation = "relu"),
      ROW(ERR_INVALID_ARGUMENT, "op:activation, column 6", CSR(), .epilogue.activation = "relu(y)"),
      ROW(OK, "", CSR(), .reduce = WLM_CUSTOM, .custom = "init=0;reduce=acc+x"),
      ROW(ERR_INVALID_ARGUMENT, "custom is NULL", CSR(), .reduce = WLM_CUSTOM),
      ROW(ERR_INVALID_ARGUMENT, "reduce is not WLM_CUSTOM", CSR(), .custom = "init=0;reduce=acc+x"),
      ROW(ERR_INVALID_ARGUMENT, "op:reduce, column 5 of 'acc+y': 'y'", CSR(), .reduce = WLM_CUSTOM,
          .custom = "init=0;reduce=acc+y"),
      ROW(ERR_INVALID_ARGUMENT, "at most 1023", CSR(), .reduce = WLM_CUSTOM, .custom = long_text()),
      ROW(ERR_UNSUPPORTED, "wlm_problem.sampling.norm with a reduce other than sum has no meaning", CSR(), SAMPLED,
          .sampling.norm = WLM_NORM_UNBIASED, .reduce = WLM_MAX),
      ROW(ERR_UNSUPPORTED, "wlm_problem.sampling.norm with a mean, which divides by the edges kept by itself", CSR(),
          SAMPLED, .sampling.norm = WLM_NORM_KEPT, .reduce = WLM_MEAN),
      ROW(OK, "", CSR(), SAMPLED, .transpose = 1),
      ROW(OK, "", CSR(), SAMPLED, .operation = WLM_SDDMM),
      ROW(ERR_UNSUPPORTED, "use WLM_ARGMAX_GRADIENT", CSR(), .operation = WLM_SDDMM, .reduce = WLM_MAX),
      ROW(OK, "", CSR(), ATTENTION),
      ROW(ERR_UNSUPPORTED, "attention with a message or reduce", CSR(), .operation = WLM_ATTENTION, .reduce = WLM_MAX),
      ROW(ERR_UNSUPPORTED, "attention with sampling", CSR(), ATTENTION, SAMPLED),
      ROW(ERR_UNSUPPORTED, "gradient of attention has no epilogue", CSR(), ATTENTION, .epilogue.bias = 1),
      ROW(OK, "", CSR(), ROWS, .score = WLM_SCORE_GATV2),
      ROW(OK, "", CSR(), ROWS, .score = WLM_SCORE_DOT),
      ROW(ERR_UNSUPPORTED, "gradients of WLM_SCORE_GATV2 and WLM_SCORE_DOT", CSR(), ROWS),
      ROW(ERR_UNSUPPORTED, "no transpose or epilogue", CSR(), ROWS, .score = WLM_SCORE_GATV2, .transpose = 1),
      ROW(ERR_UNSUPPORTED, "whose scores are the values of A", CSR(), ATTENTION, .score = WLM_SCORE_EDGE),
      ROW(ERR_INVALID_ARGUMENT, "wlm_problem.score is 4,", CSR(), .score = 4),
      ROW(OK, "", CSR(), MESSAGE),
      ROW(ERR_UNSUPPORTED, "a message needs its text", CSR(), .operation = WLM_MESSAGE),
      ROW(OK, "", CSR(), MESSAGE, .epilogue.bias = 1),
      ROW(ERR_UNSUPPORTED, "a message with an epilogue has results of rows alone", CSR(), MESSAGE, .epilogue.bias = 1,
          .custom = "edge=b"),
      ROW(OK, "", CSR(), MESSAGE, SAMPLED),
      ROW(OK, "", CSR(), MESSAGE, SAMPLED, .custom = "edge=b"),
      ROW(OK, "", CSR(), MESSAGE, SAMPLED, .transpose = 1),
      ROW(OK, "", CSR(), MESSAGE, SAMPLED, .sampling.norm = WLM_NORM_KEPT),
      ROW(ERR_UNSUPPORTED, "want_argmax needs a result max or min", CSR(), MESSAGE, .want_argmax = 1),
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_spec spec;
    assert_status(cases[i].expected, wlmi_spec_make(&cases[i].problem, &cases[i].csr, &spec));
    if (cases[i].expected != WLM_OK) assert_contains(wlm_error_detail(), cases[i].named);
    if (cases[i].expected == WLM_OK) assert_int_equal(spec.problem.n, 4);
  }
}

/* Stats and A^T read the pattern alone, of a matrix with values of any type. */
TEST(specs_of_types) {
  for (wlm_type type = WLM_F32; type <= WLM_F64; type++)
    for (int per_call = 0; per_call < 2; per_call++) {
      wlm_csr csr = CSR(.value_type = type, .values = per_call ? NULL : &csr, .has_values = per_call);
      GET(wlmi_spec, spec, wlmi_spec_of_types(&csr, &spec));
      assert_int_equal(spec.has_values, 0);
    }
}

TEST(names) {
  for (int i = 0; wlmi_message_name((wlm_message)i); i++)
    assert_int_equal(wlmi_message_from_name(wlmi_message_name((wlm_message)i)), i);
  for (int i = 0; wlmi_reduce_name((wlm_reduce)i); i++)
    assert_int_equal(wlmi_reduce_from_name(wlmi_reduce_name((wlm_reduce)i)), i);
  for (int i = 0; wlmi_sample_name((wlm_sample)i); i++)
    assert_int_equal(wlmi_sample_from_name(wlmi_sample_name((wlm_sample)i)), i);
  assert_int_equal(wlmi_message_from_name("multiply"), -1);
  assert_int_equal(wlmi_type_from_name(""), -1);
  assert_string_equal(wlmi_reduce_name(WLM_PROD), "prod");
  assert_string_equal(wlmi_message_name(WLM_RDIV), "rdiv");
}

/* Two keys differ if and only if another kernel may be chosen. */
TEST(keys) {
  wlm_problem problem = PROBLEM(.n = 8);
  wlm_csr csr = CSR(.values = &csr);
  char key[WLMI_SPEC_KEY], other[WLMI_SPEC_KEY];
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
  assert_string_equal(key, "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none");
  problem.n = 9;
  problem.epilogue.bias = 1;
  problem.policy.expected_calls = 3;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, other);
  assert_string_equal(key, other);
  problem.sampling.sample = WLM_SAMPLE_FASTRAND_COPRIME;
  problem.sampling.width = 2304;
  problem.sampling.norm = WLM_NORM_UNBIASED;
  problem.empty = WLM_EMPTY_IDENTITY;
  csr.values = NULL;
  csr.rowptr_type = WLM_I64;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, other);
  assert_string_equal(other,
                      "op=mul.sum,dense=f32,rowptr=i64,colind=i32,values=none,sample=fastrand_coprime:2304:unbiased,"
                      "empty=identity");
  problem.heads = 3; /* without values all heads are equal */
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  assert_int_equal(spec.problem.heads, 1);
  wlmi_spec_key(&spec, key);
  assert_string_equal(key, other);
  csr.values = &csr;
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
  assert_contains(key, "values=f32,sample=fastrand_coprime:2304:unbiased,empty=identity,heads=3");
}

/* want_argmax and the type of its indices are part of the key. */
TEST(keys_with_positions) {
  wlm_problem problem = PROBLEM(.n = 8, .reduce = WLM_MIN, .argmax_type = WLM_I64 /* ignored without want_argmax */);
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec, again;
  char key[WLMI_SPEC_KEY];
  assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
  assert_string_equal(key, "op=mul.min,dense=f32,rowptr=i32,colind=i32,values=none,sample=none");
  problem.want_argmax = 2;
  problem.transpose = 1;
  for (int type = WLM_I32; type <= WLM_I64; type++) {
    problem.argmax_type = (wlm_index)type;
    assert_status(WLM_OK, wlmi_spec_make(&problem, &csr, &spec));
    wlmi_spec_key(&spec, key);
    assert_non_null(strstr(key, type ? "sample=none,arg=i64,transpose=1" : "sample=none,arg=i32,transpose=1"));
    assert_status(WLM_OK, wlmi_spec_from_key(key, 8, &again));
    assert_int_equal(again.problem.want_argmax, 1);
    assert_int_equal(again.problem.argmax_type, type);
  }
  assert_status(WLM_OK, wlmi_spec_from_key("op=mul.min,dense=f32,rowptr=i32,colind=i32,values=none,"
                                           "sample=none,arg=i16",
                                           8, &again));
  assert_int_equal(again.problem.argmax_type, WLM_I16);
  assert_status(WLM_ERR_UNSUPPORTED, wlmi_spec_from_key("op=mul.min,dense=f32,rowptr=i16,colind=i32,values=none,"
                                                        "sample=none",
                                                        8, &again));
  assert_status(WLM_ERR_UNSUPPORTED, wlmi_spec_from_key("op=mul.min,dense=f32,rowptr=i32,colind=i32,values=none,"
                                                        "sample=none,arg=i8",
                                                        8, &again));
}

static void key_of(const char *custom, wlm_message message, char key[WLMI_SPEC_KEY]) {
  wlm_problem problem = PROBLEM(.n = 8, .message = message, .reduce = WLM_CUSTOM, .custom = custom);
  wlm_csr csr = CSR(.values = &csr);
  GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
}

/* Operators with the same normal form have the same key. The epilogue is not part of it. */
TEST(custom_keys) {
  char key[WLMI_SPEC_KEY], other[WLMI_SPEC_KEY];
  key_of("message=fmaxf(a*b,0);init=0;reduce=acc+x;finish=acc/degree", WLM_MUL, key);
  assert_string_equal(key,
                      "op=custom{message=fmax(a*b,0);init=0;reduce=acc+x;finish=acc/degree},dense=f32,rowptr=i32,"
                      "colind=i32,values=f32,sample=none");
  key_of(" reduce = (acc + x) ;init=+0e7; finish=acc / degree ;message=max((a*b), 0.0f);", WLM_COPY_B, other);
  assert_string_equal(key, other);
  static const char *const messages[] = {"a*b", "b", "a", "a+b", "b-a", "a-b", "b/a", "a/b"};
  for (int message = WLM_MUL; message <= WLM_RDIV; message++) { /* the message in the text or in the problem */
    char custom[64];
    snprintf(custom, sizeof custom, "init=0;reduce=acc+x;message=%s", messages[message]);
    key_of(custom, WLM_SUB, key);
    key_of("init=0;reduce=acc+x", (wlm_message)message, other);
    assert_string_equal(key, other);
  }
  key_of("init=0;reduce=acc+x", WLM_COPY_B, other);
  assert_true(!strncmp(other, "op=custom{message=b;init=0;reduce=acc+x},", 41));
  key_of("init=0;reduce=acc+x;combine=reduce", WLM_COPY_B, key);
  assert_string_not_equal(key, other);
  char most[WLMI_CUSTOM_TEXT] = "message=b;init=0;reduce=acc+x"; /* 29 characters, and many times "+x" */
  while (strlen(most) + 2 < sizeof most) strcat(most, "+x");
  key_of(most, WLM_COPY_B, key);
  assert_non_null(strstr(key, "sample=none"));
}

/* ---- hash ---------------------------------------------------------------------------------------------------- */

TEST(hashes) {
  char hex[WLMI_HASH_HEX];
  wlmi_hash back;
  wlmi_hash_to_hex(wlmi_hash_bytes("", 0), hex);
  assert_string_equal(hex, "99aa06d3014798d86001c324468d497f"); /* XXH3_128bits of the empty input, as published */
  assert_true(wlmi_hash_from_hex(hex, &back));
  assert_true(back.high == wlmi_hash_bytes("", 0).high && back.low == wlmi_hash_bytes("", 0).low);
  assert_false(wlmi_hash_from_hex("99aa", &back));
  assert_false(wlmi_hash_from_hex("99aa06d3014798d86001c324468d497g", &back));
  assert_false(wlmi_hash_from_hex("99aa06d3014798d86001c324468d497f0", &back));
  const int64_t numbers[] = {1, -2, INT64_MAX};
  OWNED(wlmi_hasher) *hasher = wlmi_hasher_create();
  wlmi_hasher_add_int64(hasher, numbers, 1);
  wlmi_hasher_add_int64(hasher, numbers + 1, 2);
  wlmi_hash pieces = wlmi_hasher_result(hasher), whole = wlmi_hash_bytes(numbers, sizeof numbers);
  assert_true(pieces.high == whole.high && pieces.low == whole.low);
}

/* ---- a set of strings ------------------------------------------------------------------------------------ */

TEST(strings) {
  enum { COUNT = 1000 };
  wlmi_strings set = {0};
  char text[32];
  int64_t index;
  for (int round = 0; round < 2; round++) /* the second round adds nothing */
    for (int i = 0; i < COUNT; i++) {
      snprintf(text, sizeof text, "%d", i - 1);
      assert_int_equal(wlmi_strings_keep(&set, i ? text : "", &index), WLM_OK);
      assert_int_equal(index, i);
    }
  assert_int_equal(set.count, COUNT);
  assert_string_equal(set.texts[0], "");
  assert_string_equal(set.texts[COUNT - 1], "998");
  wlmi_strings_release(&set);
  assert_int_equal(set.count, 0);
}

/* ---- the time of day ------------------------------------------------------------------------------------ */

static time_t clock_stands;

time_t time(time_t *to) {
  if (to) *to = clock_stands;
  return clock_stands;
}

TEST(records_have_a_time_whatever_the_clock_says) {
  static const struct {
    int64_t clock, time;
  } cases[] = {{1700000000, 1700000000},
               {0, 0},
               {-1, 0},
               {-86400 * 400, 0},
               {253402300799, 253402300799},
               {253402300800, 253402300799},
               {INT64_MAX, 253402300799}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    clock_stands = (time_t)cases[i].clock;
    assert_int_equal(wlmi_time_of_day(), cases[i].time);
  }
}
