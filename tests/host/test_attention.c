/* Attention through the public functions: one row of two edges by hand, planned and in one call, and what is refused.
 */
#include "support/test.h"
#include "warploom/warploom_attention.h"

/* Row 0 has the columns 0 and 1, row 1 none. Scores are 1 and leaky_relu(-1) = -0.5. */
static const int32_t rowptr[] = {0, 2, 2}, colind[] = {0, 1};
static const float b[] = {1, 2, 3, 4}, left[] = {1, 0}, right[] = {0, -2};
static const double expected_weights[] = {0.8175744761936437, 0.18242552380635632};

static wlm_context *open_host(void) {
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

static wlm_csr pattern(void) {
  return (wlm_csr)CSR(.rows = 2, .cols = 2, .nnz = 2, .rowptr = rowptr, .colind = colind);
}

static wlm_problem problem_of(int transpose) {
  return (wlm_problem)PROBLEM(.operation = WLM_ATTENTION, .n = 2, .transpose = transpose);
}

TEST(forward_and_gradient) {
  OWNED(wlm_context) *context = open_host();
  const wlm_csr csr = pattern();
  const wlm_problem forward = problem_of(0), gradient = problem_of(1);
  wlm_attention_operands attention = WLM_ATTENTION_OPERANDS_INIT;
  wlm_execute_args args = EXECUTE_ARGS(.attention = &attention);
  float c[4], softmax[4], db[4], dscores[2], dright[2];
  const float x[] = {1, 1, 5, 5};
  args.b = b;
  args.c = c;
  attention.left = left;
  attention.right = right;
  attention.softmax = softmax;
  attention.slope = 0.5;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &forward, &args));
  const double w0 = expected_weights[0], w1 = expected_weights[1];
  assert_float_equal(c[0], w0 * 1 + w1 * 3, 1e-6);
  assert_float_equal(c[1], w0 * 2 + w1 * 4, 1e-6);
  assert_true(c[2] == 0 && c[3] == 0);
  assert_float_equal(softmax[0], 1, 1e-6);
  assert_float_equal(softmax[1], 1 / (1 + exp(-1.5)), 1e-6);
  assert_true(softmax[2] == 0 && softmax[3] == 0);
  const float wide_left[] = {1, NAN, 0, NAN}, wide_right[] = {0, NAN, -2, NAN}; /* terms with a distance of two */
  float same[4];
  args.c = same;
  attention.left = wide_left;
  attention.right = wide_right;
  attention.ldt = 2;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &forward, &args));
  assert_memory_equal(same, c, sizeof c);
  attention.left = left;
  attention.right = right;
  attention.ldt = 0;

  const float delta[] = {c[0] + c[1], 0};
  args.c = NULL;
  args.x = x;
  attention.delta = delta;
  args.db = db;
  attention.dscores = dscores;
  attention.dright = dright;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &gradient, &args));
  assert_float_equal(db[0], w0, 1e-6);
  assert_float_equal(db[2], w1, 1e-6);
  assert_float_equal(dscores[0], w0 * (3 - (double)delta[0]), 1e-6);
  assert_float_equal(dscores[1], w1 * (7 - (double)delta[0]) * 0.5, 1e-6);
  assert_true(dright[0] == dscores[0] && dright[1] == dscores[1]);
}

static void refused(wlm_context *context, int transpose, const wlm_execute_args *args, wlm_status status,
                    const char *named) {
  const wlm_csr csr = pattern();
  const wlm_problem problem = problem_of(transpose);
  assert_status(status, wlm_spmm(context, &csr, &problem, args));
  assert_contains(wlm_error_detail(), named);
}

TEST(wrong_calls) {
  OWNED(wlm_context) *context = open_host();
  float c[4], softmax[4] = {0}, delta[2] = {0}, dscores[2];
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .x = b, .c = c, .db = c);
  wlm_attention_operands attention = ATTENTION_OPERANDS(.dscores = dscores), wrong;
  refused(context, 0, &args, WLM_ERR_INVALID_ARGUMENT, "left is NULL"); /* without wlm_attention_operands */
  attention.left = left;
  attention.right = right;
  attention.softmax = softmax;
  attention.delta = delta;
  args.attention = &wrong;
  wrong = attention;
  wrong.left = NULL;
  refused(context, 0, &args, WLM_ERR_INVALID_ARGUMENT, "left is NULL");
  wrong = attention;
  wrong.dropout = 0.5;
  refused(context, 0, &args, WLM_ERR_INVALID_ARGUMENT, "dropout is 0.5, must be 0");
  wrong = attention;
  wrong.ldt = -1;
  refused(context, 0, &args, WLM_ERR_INVALID_ARGUMENT, "ldt is -1");
  wrong = attention;
  wrong.delta = NULL;
  refused(context, 1, &args, WLM_ERR_INVALID_ARGUMENT, "delta is NULL");
  wrong = attention;
  wrong.size = sizeof wrong - 1;
  refused(context, 0, &args, WLM_ERR_INVALID_ARGUMENT, "wlm_attention_operands.size is");
  args.attention = &attention;
  args.beta = 1;
  refused(context, 1, &args, WLM_ERR_UNSUPPORTED, "the gradient of attention with alpha 1 and beta 1");
}

/* The scores of edges need no arrays besides those of a product. */
TEST(edge_scores) {
  OWNED(wlm_context) *context = open_host();
  const float values[] = {1, -0.5F};
  float c[4];
  wlm_csr csr = pattern();
  wlm_problem problem = problem_of(0);
  problem.score = WLM_SCORE_EDGE;
  csr.values = values;
  wlm_execute_args args = EXECUTE_ARGS(.b = b, .c = c);
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_float_equal(c[0], expected_weights[0] * 1 + expected_weights[1] * 3, 1e-6);
}

/* With two columns of one head: scores of row 0 are 1 * leaky_relu(1 + 1) - 2 * leaky_relu(-4 + 2) = 4 and
 * 1 * (1 + 3) - 2 * leaky_relu(-4 + 4) = 4, so each edge has the weight 1/2. */
TEST(gatv2) {
  OWNED(wlm_context) *context = open_host();
  const float q[] = {1, -4, 9, 9}, att[] = {1, -2}, x[] = {1, 1, 5, 5}, *const none = NULL;
  float c[4], datt[4], softmax[4];
  wlm_csr csr = pattern();
  wlm_problem problem = problem_of(0);
  wlm_attention_operands attention = ATTENTION_OPERANDS(.q = q, .att = att, .slope = 0.5, .softmax = softmax);
  wlm_execute_args args = EXECUTE_ARGS(.attention = &attention, .b = b, .c = c);
  problem.score = WLM_SCORE_GATV2;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_true(c[0] == 2 && c[1] == 3 && c[2] == 0 && c[3] == 0);
  const float delta[] = {c[0] + c[1], 0};
  attention.q = none;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_spmm(context, &csr, &problem, &args), "wlm_spmm: q is NULL");

  /* The gradients of scores are 0.5 * (3 - 5) = -1 and 0.5 * (7 - 5) = 1. */
  problem.operation = WLM_ATTENTION_ROWS;
  args.x = x;
  attention.q = q;
  attention.delta = delta;
  attention.datt = datt;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_float_equal(c[0], 1 * (-1 + 1), 1e-6);
  assert_float_equal(c[1], -2 * (-1 * 0.5 + 1 * 0.5), 1e-6);
  assert_true(c[2] == 0 && c[3] == 0);
  assert_float_equal(datt[0], -1 * 2 + 1 * 4, 1e-6);
  assert_float_equal(datt[1], -1 * -1 + 1 * 0, 1e-6);
  assert_true(datt[2] == 0 && datt[3] == 0);
  problem.dropout = 1;
  attention.dropout = 1 - 1e-9; /* of no weight more than delta is left */
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_float_equal(datt[0], 0.5 * (-5 * 2 - 5 * 4), 1e-5);
  problem.dropout = 0;
  attention.dropout = 0;
  args.beta = 1;
  assert_status(WLM_ERR_UNSUPPORTED, wlm_spmm(context, &csr, &problem, &args));
  args.beta = 0;
  attention.ldt = 1;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_spmm(context, &csr, &problem, &args), "wlm_spmm: ldt is 1, must be 2");
}

/* Scores of row 0 are 0.5 * (1 * 1 + 2 * 2) - 0.5 = 2 and 0.5 * (1 * 3 - 2 * 0.5) + 1 = 2, so each edge has the weight
 * 1/2. */
TEST(dot) {
  OWNED(wlm_context) *context = open_host();
  const float q[] = {1, 2, 9, 9}, k[] = {1, 2, 3, -0.5F}, values[] = {-0.5F, 1}, x[] = {1, 1, 5, 5};
  float c[4], softmax[4], db[4], dk[4], dscores[2];
  wlm_csr csr = pattern();
  wlm_problem problem = problem_of(0);
  wlm_attention_operands attention = ATTENTION_OPERANDS(.q = q, .k = k, .scale = 0.5, .softmax = softmax);
  wlm_execute_args args = EXECUTE_ARGS(.attention = &attention, .b = b, .c = c);
  problem.score = WLM_SCORE_DOT;
  csr.values = values;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_true(c[0] == 2 && c[1] == 3 && c[2] == 0 && c[3] == 0);
  assert_float_equal(softmax[0], 2, 1e-6);
  assert_float_equal(softmax[1], 0.5, 1e-6);

  const float delta[] = {c[0] + c[1], 0};
  problem.transpose = 1;
  args.x = x;
  attention.delta = delta;
  args.db = db;
  attention.dk = dk;
  attention.dscores = dscores;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_float_equal(db[0], 0.5, 1e-6);
  assert_float_equal(dscores[0], 0.5 * (3 - 5), 1e-6);
  assert_float_equal(dscores[1], 0.5 * (7 - 5), 1e-6);
  assert_float_equal(dk[0], -0.5 * 1, 1e-6);
  assert_float_equal(dk[3], 0.5 * 2, 1e-6);
  attention.dright = softmax;
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_spmm(context, &csr, &problem, &args), "dright with WLM_SCORE_DOT");
  attention.dright = NULL;

  float dq[4];
  attention.dscores = NULL; /* without the gradients of scores, db and dk are the same */
  const float first_db = db[0], first_dk = dk[0];
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_true(db[0] == first_db && dk[0] == first_dk);
  problem.transpose = 0;
  problem.operation = WLM_ATTENTION_ROWS;
  args.c = dq;
  assert_status(WLM_OK, wlm_spmm(context, &csr, &problem, &args));
  assert_float_equal(dq[0], 0.5 * (-1 * 1 + 1 * 3), 1e-6);
  assert_float_equal(dq[1], 0.5 * (-1 * 2 + 1 * -0.5), 1e-6);
  assert_true(dq[2] == 0 && dq[3] == 0);
  attention.datt = dk;
  assert_fails(WLM_ERR_UNSUPPORTED, wlm_spmm(context, &csr, &problem, &args), "datt with WLM_SCORE_DOT");
  attention.datt = NULL;
  problem.operation = WLM_ATTENTION;
  problem.transpose = 1;
  attention.k = NULL;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlm_spmm(context, &csr, &problem, &args), "wlm_spmm: k is NULL");
}
