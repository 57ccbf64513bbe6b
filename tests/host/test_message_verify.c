/* Messages under the tuner's checks on the host device: right plans pass, and a wrong number in any kind of result, a
 * wrong position, and a write beyond a result are found. */
#include "core/synth/input.h"
#include "support/command.h"
#include "support/test.h"
#include "support/verified.h"
#include "tuner/upload.h"
#include "warploom/warploom_message.h"
#include "warploom/warploom_tune.h"

enum { ROWS = 90, COLS = 70, LONG_ROW = 40 };

static wlm_context *context;
static wlmi_csr_host csr;
static char database[320];

/* Rows of 0 to 12 edges, and one with all columns. */
static int make_matrix(void) {
  csr = (wlmi_csr_host){.rows = ROWS, .cols = COLS};
  csr.rowptr = wlmi_alloc((ROWS + 1) * sizeof *csr.rowptr);
  csr.colind = wlmi_alloc((size_t)ROWS * COLS * sizeof *csr.colind);
  csr.values = wlmi_alloc((size_t)ROWS * COLS * sizeof *csr.values);
  if (!csr.rowptr || !csr.colind || !csr.values) return 1;
  for (int row = 0; row < ROWS; row++) {
    csr.rowptr[row] = csr.nnz;
    const int degree = row == LONG_ROW ? COLS : row * 7 % 13;
    for (int k = 0; k < degree; k++, csr.nnz++) {
      csr.colind[csr.nnz] = row == LONG_ROW ? k : k * 5 + row % 5;
      csr.values[csr.nnz] = 0.5f + (float)(csr.nnz * 37 % 101) / 100;
    }
  }
  csr.rowptr[ROWS] = csr.nnz;
  return 0;
}

static int begin(void **state) {
  if (home_begin(state) || make_matrix()) return 1;
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = database, .system_database = "");
  return wlm_context_create(&options, &context) != WLM_OK;
}

static int end(void **state) {
  wlmi_csr_host_release(&csr);
  wlm_context_destroy(context);
  return folder_end(state);
}

/* ---- a message that was computed and verified once ------------------------------------------------------- */

typedef struct walked {
  wlmi_upload upload;
  wlm_problem problem;
  wlmi_operands operands;
  wlmi_verifier *verifier;
} walked;

static wlm_problem problem_of(const char *text, int64_t n, int64_t heads) {
  return (wlm_problem)PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = text, .n = n, .heads = heads);
}

static void walked_make(walked *w, const wlm_problem *problem, const wlm_execute_args *call) {
  *w = (walked){.problem = *problem};
  assert_status(WLM_OK, wlmi_upload_create_typed(context, &csr, WLM_I32, WLM_I32, problem->dense_type, problem->heads,
                                                 &w->upload));
  assert_status(WLM_OK, wlmi_operands_create(context, w->upload.matrix, problem, call, 3, &w->operands));
  assert_status(WLM_OK, wlmi_verifier_create(&w->operands, 3, &w->verifier));
}

static void walked_release(walked *w) {
  wlmi_verifier_destroy(w->verifier);
  wlmi_operands_release(&w->operands);
  wlmi_upload_release(&w->upload);
}

/* Runs the variant, NULL for the one that is chosen, at both alignments. */
static void run(walked *w, const char *variant) {
  for (int shift = 1; shift >= 0; shift--) {
    OWNED(wlm_plan) *plan = NULL;
    double error = -1;
    assert_status(WLM_OK, wlmi_operands_shift(&w->operands, shift));
    assert_status(WLM_OK, variant ? wlm_plan_create_variant(context, w->upload.matrix, &w->problem, variant, &plan)
                                  : wlm_plan_create(context, w->upload.matrix, &w->problem, &plan));
    const wlm_status status = verify_plan(&w->operands, w->verifier, plan, &error);
    if (status != WLM_OK)
      fail_msg("%s, %s, shift %d: %s", w->problem.custom, wlm_plan_variant(plan), shift, wlm_error_detail());
    assert_true(error >= 0 && (error < 1e-5 || w->problem.dense_type != WLM_F32));
  }
}

/* ---- right results --------------------------------------------------------------------------------------- */

static const char *const messages[] = {
    "sum=relu(b+e)",
    "sum=sigmoid(x+k)*b",
    "sum=relu(x*b+y)",
    "mean=b*e",
    "x:row:1;k:column:1;sum=tanh(x+k)*a*b",
    "mean=b;max=b;min=b;sum=b*b",
    "s:all:1;g:all;sum=a*s*g*b/degree",
    "edge=x-b*e",
    "edge_sum=x*b",
    "edge_sum=a;edge=a*degree",
    "h:row:heads;q:edge:heads;max=leaky_relu(h+b,0.2)*q;edge_sum=h*b",
    "prod=1+b/8",
    "d0:row;w0:row:wins;sum=d0*w0*a",
    "d0:row;w0:row:wins;edge=d0*w0*b",
    "sum=0",
    "sum=log(b)*x",
    "score=a;softmax=kept*b;edge_sum=kept*x;edge=kept",
    "l:row:heads;r:column:heads;score=leaky_relu(l+r+a,0.25);softmax=b",
    "t:edge_sum=x*k;score=t/2;softmax=b*t;sum=b",
    "d:row;c:row;l:row:base;s:row:scale;t:edge_sum=x*b;g:edge_sum=expscale(t/4,l,s)*d*(b-c);sum=g*b;edge_sum=g",
};

TEST(right_results_pass) {
  static const char *const variants[] = {NULL, "host_row/rows=16,tile=16", "host_nnz/nonzeros=1024,tile=16"};
  static const struct {
    int64_t n, heads;
    wlm_type type;
  } shapes[] = {{8, 2, WLM_F32}, {5, 1, WLM_F64}, {1, 1, WLM_F32}, {16, 4, WLM_BF16}};
  for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
    for (int transpose = 0; transpose < 2; transpose++) {
      const size_t k = (i + 2 * (size_t)transpose) % 4, v = (i / 4 + k + (size_t)transpose) % 3; /* of each some */
      wlm_problem problem = problem_of(messages[i], shapes[k].n, shapes[k].heads);
      problem.dense_type = shapes[k].type;
      problem.transpose = transpose;
      problem.want_argmax = strstr(messages[i], ";max=") != NULL;
      problem.argmax_type = k % 2 ? WLM_I64 : WLM_I32;
      wlm_execute_args call = EXECUTE_ARGS(.ldb = problem.n + 3 * (int)(k % 2), .ldc = problem.n + 2 * (int)(k % 2));
      MAKE(walked, w, &problem, &call);
      run(&w, variants[v]);
    }
}

/* ---- wrong results --------------------------------------------------------------------------------------- */

/* "results" or "positions" of result r; NULL = it has none. */
static const wlmi_call_array *find(const walked *w, const char *kind, int r) {
  char name[WLM_OPERAND_NAME];
  snprintf(name, sizeof name, "%s[%d]", kind, r);
  return wlmi_operands_find(&w->operands, name);
}

/* All kinds of results in two texts. */
static const char all_kinds[] = "edge=x*b;sum=b;edge_sum=x*b;max=a*b;mean=b*e;min=b+e";
static const char weighted[] = "t:edge_sum=x*b;score=t/8;softmax=b;softmax=x";

static void expect_mismatch(const walked *w, const char *says) {
  double error;
  if (wlmi_verify_result(w->verifier, &error) != WLM_ERR_MISMATCH) fail_msg("not found: %s", says);
  assert_contains(wlm_error_detail(), says);
}

/* One number after the other, some of them, twice as large and a bit more. */
static void spoil_numbers(walked *w, int r) {
  const wlmi_call_array *array = find(w, "results", r);
  float *numbers = (float *)(void *)wlmi_call_array_memory(&w->operands, array);
  for (int64_t line = 0; line < array->lines; line += 7)
    for (int64_t j = 0; j < array->width; j += 3) {
      float *number = &numbers[line * array->ld + j], kept = *number;
      *number = isinf(kept) ? 0 : 2 * kept + 0.01f;
      expect_mismatch(w, array->name);
      *number = NAN;
      expect_mismatch(w, array->name);
      *number = kept;
    }
  GET(double, error, wlmi_verify_result(w->verifier, &error));
}

static void spoil_positions(walked *w, int r) {
  const wlmi_call_array *array = find(w, "positions", r);
  int32_t *positions = (int32_t *)(void *)wlmi_call_array_memory(&w->operands, array);
  for (int64_t line = 0; line < array->lines; line += 5)
    for (int64_t j = 0; j < array->width; j++) {
      int32_t *position = &positions[line * array->ld + j];
      const int32_t kept = *position, others[] = {kept + 1, kept < 0 ? 0 : -1, (int32_t)csr.nnz};
      for (int i = 0; i < 3; i++) {
        *position = others[i];
        expect_mismatch(w, array->name);
      }
      *position = kept;
    }
  GET(double, error, wlmi_verify_result(w->verifier, &error));
}

static void expect_write(const walked *w, char *byte, int padding, const char *says) {
  const char kept = *byte;
  *byte = (char)(kept + 1);
  assert_fails(WLM_ERR_MISMATCH, wlmi_operands_intact(&w->operands, padding), says);
  *byte = kept;
  assert_status(WLM_OK, wlmi_operands_intact(&w->operands, 1));
}

static void spoil_guards(walked *w, const wlmi_call_array *array) {
  char *memory = wlmi_call_array_memory(&w->operands, array), says[64];
  char *end = memory + (size_t)(array->lines * array->ld) * array->size;
  snprintf(says, sizeof says, "behind %s was written", array->name);
  expect_write(w, end, 0, says);
  expect_write(w, end + 4000, 0, says);
  if (!array->moves) return;
  snprintf(says, sizeof says, "%s was written behind its 6 columns, in row 1", array->name);
  expect_write(w, memory + (size_t)(array->ld + array->width) * array->size, 1, says);
}

TEST(wrong_results_are_found) {
  for (int i = 0; i < 4; i++) {
    const int is_weighted = i % 2;
    wlm_problem problem = problem_of(is_weighted ? weighted : all_kinds, 6, 2);
    walked w;
    problem.want_argmax = !is_weighted;
    problem.transpose = i / 2;
    wlm_execute_args call = EXECUTE_ARGS(.ldb = 8, .ldc = 8);
    walked_make(&w, &problem, &call);
    run(&w, NULL);
    for (int r = 0; r < (is_weighted ? 3 : 6); r++) {
      spoil_numbers(&w, r);
      spoil_guards(&w, find(&w, "results", r));
      if (!find(&w, "positions", r)) continue;
      spoil_positions(&w, r);
      spoil_guards(&w, find(&w, "positions", r));
    }
    assert_status(WLM_OK, wlmi_operands_poison(&w.operands));
    expect_mismatch(&w, "results[0]");
    walked_release(&w);
  }
}

/* At the other alignment there is an element before each array. */
TEST(writes_before_results_are_found) {
  const wlm_problem problem = problem_of(all_kinds, 6, 2);
  MAKE(walked, w, &problem, NULL);
  assert_status(WLM_OK, wlmi_operands_shift(&w.operands, 1));
  assert_status(WLM_OK, wlmi_operands_poison(&w.operands));
  for (int r = 0; r < 6; r++) {
    const wlmi_call_array *array = find(&w, "results", r);
    assert_int_equal(array->moves, r != 2);
    if (array->moves) expect_write(&w, (char *)array->buffer.memory, 0, "before results[");
  }
}

TEST(wrong_dropout_is_refused) {
  static const double shares[] = {1, -0.25, NAN};
  const wlm_problem problem = problem_of("sum=kept*b", 6, 2);
  double error;
  MAKE(walked, w, &problem, NULL);
  OWN(wlm_plan, plan, wlm_plan_create(context, w.upload.matrix, &problem, &plan));
  for (int i = 0; i < 3; i++) {
    w.operands.message->call.scalars[1] = shares[i]; /* b is operand 0 */
    assert_fails(WLM_ERR_INVALID_ARGUMENT, verify_plan(&w.operands, w.verifier, plan, &error),
                 "the scalar of operand kept is ");
    assert_contains(wlm_error_detail(), "must be at least 0 and below 1");
  }
}

/* Either of two edges may win whose messages differ by less than rounding, but no other. */
TEST(close_positions) {
  wlm_problem problem = problem_of("max=exp(b)*0+1", 2, 1);
  double error;
  problem.want_argmax = 1;
  MAKE(walked, w, &problem, NULL);
  run(&w, NULL);
  int32_t *positions = (int32_t *)(void *)wlmi_call_array_memory(&w.operands, find(&w, "positions", 0));
  positions[2 * LONG_ROW]++; /* equal messages, and not the lowest position */
  expect_mismatch(&w, "positions[0]: [40,0] is");
  walked_release(&w);

  problem.custom = "max=1+b*1e-12";
  walked_make(&w, &problem, NULL);
  run(&w, NULL);
  positions = (int32_t *)(void *)wlmi_call_array_memory(&w.operands, find(&w, "positions", 0));
  for (int k = 0; k < COLS; k++) {
    positions[2 * LONG_ROW] = (int32_t)csr.rowptr[LONG_ROW] + k;
    assert_status(WLM_OK, wlmi_verify_result(w.verifier, &error));
  }
  positions[2 * LONG_ROW]++; /* of the next row */
  expect_mismatch(&w, "positions[0]: [40,0] is");
}

/* ---- large problems --------------------------------------------------------------------------------------- */

/* Of a large problem some rows are compared with float64, and all by a second reference. */
TEST(every_row_of_large_problems) {
  static const wlmi_verify_limits limits = {.products = 1e4, .elements = 1e4, .rows = 100};
  for (int transpose = 0; transpose < 2; transpose++) {
    wlm_problem problem = problem_of("sum=x*b;edge=x*b;max=b", 8, 1);
    wlmi_csr_host small = csr;
    walked w;
    problem.transpose = transpose;
    problem.want_argmax = 1;
    assert_status(WLM_OK, wlmi_input_read("uniform:rows=700,d=12", &csr));
    walked_make(&w, &problem, NULL);
    wlmi_verifier_destroy(w.verifier);
    assert_status(WLM_OK, wlmi_verifier_create_within(&w.operands, 3, &limits, &w.verifier));
    run(&w, NULL);
    assert_in_range(wlmi_verifier_rows(w.verifier), 80, 104);
    GET(double, error, wlmi_verify_spots(w.verifier, &error));
    const wlmi_call_array *edges = find(&w, "results", 1);
    float *numbers = (float *)(void *)wlmi_call_array_memory(&w.operands, edges);
    for (int64_t edge = 0; edge < 20; edge++) {
      float *number = &numbers[edge * (csr.nnz / 20) * edges->ld + 7], kept = *number;
      *number = NAN;
      expect_mismatch(&w, "results[1]: edge ");
      *number = kept;
    }
    assert_status(WLM_OK, wlmi_operands_poison(&w.operands));
    assert_status(WLM_ERR_MISMATCH, wlmi_verify_spots(w.verifier, &error));
    walked_release(&w);
    wlmi_csr_host_release(&csr);
    csr = small;
  }
}

/* ---- tuning ---------------------------------------------------------------------------------------------- */

static int64_t tuned_for(const char *text, int64_t n) {
  const wlm_problem problem = problem_of(text, n, 1);
  wlm_tune_options options = TUNE_OPTIONS(.min_sample_seconds = 1e-5, .samples = 3);
  GET(wlmi_upload, upload, wlmi_upload_create(context, &csr, WLM_I32, &upload));
  assert_status(WLM_OK, wlm_tune(context, upload.matrix, &problem, NULL, &options));
  wlmi_upload_release(&upload);
  assert_int_equal(database_integer(database, "SELECT count(*) FROM measurement WHERE failed", NULL), 0);
  return database_integer(database, "SELECT count(*) FROM measurement", NULL);
}

TEST(tuning) {
  const wlm_problem problem = problem_of(" sum = relu(b + e) ", 8, 1);
  const int64_t stored = tuned_for("sum=relu(b+e)", 8);
  assert_true(stored >= 4);
  forget_noise(database);
  assert_int_equal(tuned_for("sum = relu(b + e);", 8), stored); /* another spelling: all is known */
  HOLD(wlmi_upload, upload, wlmi_upload_create(context, &csr, WLM_I32, &upload));
  OWN(wlm_plan, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  WLM_FREED char *why = NULL;
  assert_status(WLM_OK, wlm_plan_explain(plan, 0, &why));
  assert_contains(why, "fingerprint");
}

GROUP(begin, end)
