/* The float64 reference of messages against values computed by hand. */
#include "core/reference/message.h"
#include "core/reference/reference.h"
#include "support/test.h"

enum { ROWS = 4, COLS = 3, EDGES = 6, N = 2 };

/* 4 x 3: row 0 = {2: 2, 0: -3}, row 1 empty, row 2 = {1: 4}, row 3 = {0: 1, 0: 5, 1: -2} */
static int64_t rowptr[] = {0, 2, 2, 3, 6};
static int32_t colind[] = {2, 0, 1, 0, 0, 1};
static float values[] = {2, -3, 4, 1, 5, -2};
static const wlmi_csr_host a = {ROWS, COLS, EDGES, rowptr, colind, values, NULL, NULL};

/* Its transpose: column 0 = {0: -3, 3: 1, 3: 5}, column 1 = {2: 4, 3: -2}, column 2 = {0: 2} */
static int64_t t_rowptr[] = {0, 3, 5, 6};
static int32_t t_colind[] = {0, 3, 3, 2, 3, 0};
static float t_values[] = {-3, 1, 5, 4, -2, 2};
static const int64_t t_order[] = {1, 3, 4, 2, 5, 0};
static const wlmi_csr_host t = {COLS, ROWS, EDGES, t_rowptr, t_colind, t_values, NULL, NULL};

/* Lines of two numbers. */
static const float b[] = {10, 1, 7, 2, 3, 4}, x[] = {1, -1, 2, -2, 3, -3, 4, -4};
static const float e[] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51};

enum { MOST = 2 * ROWS * N > EDGES *N ? 2 * ROWS *N : EDGES *N }; /* numbers of a result */

typedef struct case_of_text {
  wlm_problem problem;
  wlmi_message message;
  wlm_message_args call;
  wlmi_message_walk walk;
  double value[WLM_MAX_RESULTS][MOST], scale[WLM_MAX_RESULTS][MOST];
  int64_t positions[WLM_MAX_RESULTS][MOST];
} case_of_text;

static void bind(case_of_text *c, const char *name, const void *memory) {
  for (int i = 0; i < c->message.operands; i++)
    if (!strcmp(c->message.name[i], name)) c->call.operands[i] = memory;
}

static void case_of_text_make(case_of_text *c, const char *text, int64_t heads, int transpose) {
  *c = (case_of_text){.problem = WLM_PROBLEM_INIT, .call = WLM_MESSAGE_ARGS_INIT};
  c->problem.n = N;
  c->problem.heads = heads;
  c->problem.transpose = transpose;
  assert_status(WLM_OK, wlmi_message_parse(text, &c->message));
  bind(c, "b", b);
  bind(c, "x", x);
  bind(c, "e", e);
  c->walk = (wlmi_message_walk){transpose ? &t : &a,
                                &c->problem,
                                &c->message,
                                &c->call,
                                transpose ? t_order : NULL,
                                transpose ? rowptr : NULL,
                                NULL,
                                0};
}

static void case_of_text_release(case_of_text *c) { wlmi_message_release(&c->message); }

static void run(case_of_text *c) {
  wlmi_reference_result to[WLM_MAX_RESULTS];
  for (int r = 0; r < WLM_MAX_RESULTS; r++) to[r] = (wlmi_reference_result){c->value[r], c->scale[r], c->positions[r]};
  assert_status(WLM_OK, wlmi_reference_message(&c->walk, NULL, c->walk.a->rows, c->walk.a->rowptr, to));
}

static void assert_values(const double *got, const double *wanted, int count, const char *what) {
  for (int i = 0; i < count; i++)
    if (got[i] != wanted[i] && !(fabs(got[i] - wanted[i]) <= 1e-12 * fabs(wanted[i])) &&
        !(isnan(got[i]) && isnan(wanted[i])))
      fail_msg("%s: [%d] is %.17g instead of %.17g", what, i, got[i], wanted[i]);
}

/* Runs one text whose results are those given, one after the other. */
static void check(const char *text, int64_t heads, int transpose, int count, const double *wanted) {
  MAKE(case_of_text, c, text, heads, transpose);
  run(&c);
  for (int r = 0; r < c.message.results; r++) assert_values(c.value[r], wanted + r * count, count, text);
}
#define CHECK(text, heads, transpose, count, ...) check(text, heads, transpose, count, (const double[]){__VA_ARGS__})

TEST(results_of_rows) {
  CHECK("sum=b", 1, 0, 8, 13, 5, 0, 0, 7, 2, 27, 4);
  CHECK("sum=a*b", 1, 0, 8, 6 - 30, 8 - 3, 0, 0, 28, 8, 10 + 50 - 14, 1 + 5 - 4);
  CHECK("sum=b;mean=b;max=b;min=b;prod=b", 1, 0, 8,                 /* five results in one walk */
        13, 5, 0, 0, 7, 2, 27, 4, 6.5, 2.5, 0, 0, 7, 2, 9, 4.0 / 3, /* sum, mean */
        10, 4, 0, 0, 7, 2, 10, 2, 3, 1, 0, 0, 7, 2, 7, 1,           /* max, min */
        30, 4, 1, 1, 7, 2, 700, 2);                                 /* prod */
  CHECK("sum=x*b", 1, 0, 8, 13, -5, 0, 0, 21, -6, 108, -16);
  CHECK("sum=relu(b-e)", 1, 0, 8, 3, 3, 0, 0, 0, 0, 0, 0);
  CHECK("sum=b/degree", 1, 0, 8, 6.5, 2.5, 0, 0, 7, 2, 9, 4.0 / 3);
  CHECK("sum=3", 1, 0, 8, 6, 6, 0, 0, 3, 3, 9, 9);
}

/* Operands of rows and columns keep their places: the walked rows are the columns of A. */
TEST(results_of_columns) {
  CHECK("sum=x", 1, 1, 6, 1 + 4 + 4, -9, 3 + 4, -7, 1, -1);
  CHECK("sum=a*x", 1, 1, 6, -3 + 4 + 20, 3 - 4 - 20, 12 - 8, -12 + 8, 2, -2);
  CHECK("sum=b", 1, 1, 6, 30, 3, 14, 4, 3, 4);
  CHECK("sum=e", 1, 1, 6, 10 + 30 + 40, 83, 20 + 50, 72, 0, 1);
  CHECK("mean=e", 1, 1, 6, 80.0 / 3, 83.0 / 3, 35, 36, 0, 1); /* by the edges of the column */
  CHECK("sum=degree", 1, 1, 6, 2 + 3 + 3, 8, 1 + 3, 4, 2, 2); /* of the row of A */
}

/* In the order of the walked edges. */
TEST(results_of_edges) {
  CHECK("edge=x*b", 1, 0, 12, 3, -4, 10, -1, 21, -6, 40, -4, 40, -4, 28, -8);
  CHECK("edge_sum=x*b", 1, 0, 6, -1, 9, 15, 36, 36, 20);
  CHECK("edge_sum=x*b", 2, 0, 12, 3, -4, 10, -1, 21, -6, 40, -4, 40, -4, 28, -8);
  CHECK("edge_sum=a", 1, 0, 6, 4, -6, 8, 2, 10, -4);
  CHECK("edge_sum=x*b", 1, 1, 6, 9, 36, 36, 15, 20, -1);
  CHECK("edge=e", 1, 1, 12, 10, 11, 30, 31, 40, 41, 20, 21, 50, 51, 0, 1);
}

/* The hash of the seed and of the place in A, times the heads, decides: the same edges of A and of A^T. */
TEST(dropout) {
  enum { HEADS = 2 };
  static const double dropped = 0.375;
  int zeros = 0;
  for (uint64_t seed = 0; seed < 20; seed++)
    for (int transpose = 0; transpose < 2; transpose++) {
      MAKE(case_of_text, c, "edge=kept", HEADS, transpose);
      c.call.scalars[0] = dropped;
      c.walk.seed = seed;
      run(&c);
      for (int p = 0; p < EDGES; p++)
        for (int head = 0; head < HEADS; head++) {
          const int at = (transpose ? t_order[p] : p) * HEADS + head;
          uint64_t x = seed ^ ((uint64_t)at * 0x9E3779B97F4A7C15ull);
          x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
          x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
          x ^= x >> 31;
          const int is_dropped = (double)(x >> 40) < dropped * 16777216;
          zeros += is_dropped;
          const double wanted = is_dropped ? 0 : 1.6, got = c.value[0][p * N + head];
          if (fabs(got - wanted) > 1e-12) fail_msg("seed %d, edge %d, head %d: %g", (int)seed, p, head, got);
        }
    }
  assert_in_range(zeros, 20 * EDGES * HEADS * 2 / 4, 20 * EDGES * HEADS * 2 / 2);
}

/* Row 0 has scores 2 and -3, row 2 one, row 3 the scores 1, 5 and -2. A row without edges gives 0 and -inf. */
TEST(softmax) {
  const double w = 1 / (1 + exp(-5)), u = exp(-4), v = exp(-7), total = u + 1 + v;
  MAKE(case_of_text, c, "score=a;softmax=b", 1, 0);
  run(&c);
  assert_values(c.value[0], (const double[]){2, 1 / (1 + exp(-5)), 0, 0, 4, 1, 5, 1 / total}, 8, "score");
  assert_values(c.value[1],
                (const double[]){3 * w + 10 * (1 - w), 4 * w + (1 - w), 0, 0, 7, 2, (10 * (u + 1) + 7 * v) / total,
                                 (u + 1 + 2 * v) / total},
                8, "softmax");
  MAKE(case_of_text, h, "score=a;softmax=2", 2, 0);
  h.walk.a = &(wlmi_csr_host){
      ROWS, COLS, EDGES, rowptr, colind, (float[]){1, 2, 1, -INFINITY, -INFINITY, 0, 3, 3, 3, 3, 3, 9}, NULL, NULL};
  run(&h);
  assert_values(h.value[0], (const double[]){1, 0.5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3, 1. / 3, 9, 1 / (1 + 2 * exp(-6))},
                16, "score of heads");
  assert_values(h.value[1], (const double[]){2, 2, 0, 0, 0, 2, 2, 2}, 8, "a row whose scores all are -inf gives 0");
}

/* Of an edge that a sample takes twice both count, and edges that it leaves out have no part in it. */
TEST(softmax_of_samples) {
  const double w = 2 / (2 + exp(-7)), v = exp(-7) / (2 + exp(-7));
  MAKE(case_of_text, c, "score=a;softmax=b;edge_sum=a", 1, 0);
  c.walk.a = &(wlmi_csr_host){ROWS,   COLS,
                              EDGES,  rowptr,
                              colind, (float[]){2, NAN, NAN, 1, 5, -2},
                              NULL,   (wlmi_edge_share[]){{3, 1}, {0, 1}, {0, 1}, {0, 1}, {2, 1}, {1, 1}}};
  run(&c);
  assert_values(c.value[0], (const double[]){2, 1. / 3, 0, 0, 0, 0, 5, 1 / (2 + exp(-7))}, 8, "score of samples");
  assert_values(c.value[1], (const double[]){3, 4, 0, 0, 0, 0, 10 * w + 7 * v, w + 2 * v}, 8, "softmax of samples");
  assert_values(c.value[2], (const double[]){12, 0, 0, 0, 20, -4}, 6, "edges of samples");
}

/* Sums over the columns of a head, of which one reads another. */
TEST(sums) {
  CHECK("s:edge_sum=x*b;sum=s*b", 1, 0, 8, -3 + 90, -4 + 9, 0, 0, 15 * 7, 30, 720 + 140, 36 * 2 + 40);
  CHECK("s:edge_sum=x*b;edge=s", 2, 0, 12, 3, -4, 10, -1, 21, -6, 40, -4, 40, -4, 28, -8);
  CHECK("s:edge_sum=x*b;t:edge_sum=s+b;edge=t", 1, 0, 12, 5, 5, 29, 29, 39, 39, 83, 83, 83, 83, 49, 49);
  CHECK("s:edge_sum=b;edge_sum=s*x", 1, 0, 6, 0, 0, 0, 0, 0, 0);
}

/* The derived text against difference quotients of the sum of the results: by operands of each place, in a score, its
 * sums, and the message. Row 1 has no edges. `shares` = NULL: nothing is sampled. */
static void check_gradients_of_softmax(wlmi_edge_share *shares) {
  static const char text[] =
      "l:row:1;r:column:1;t:edge_sum=x*b*0.125;u:edge_sum=t*x*0.25;score=leaky_relu(l+r,0.5)*sigmoid(t)+u*0.125+a;"
      "softmax=b*b;softmax=x*t;sum=b*u";
  static float l[ROWS] = {1, 2, -3, 0.5f}, r[COLS] = {0.25f, 1, -2}, moved_x[ROWS * N], moved_b[COLS * N];
  static float small[EDGES];
  static const struct {
    const char *by;
    float *memory;
    int lines, width, of_edges;
  } cases[] = {{"l", l, ROWS, 1, 0},
               {"x", moved_x, ROWS, N, 0},
               {"r", r, COLS, 1, 0},
               {"b", moved_b, COLS, N, 0},
               {"a", small, EDGES, 1, 1}};
  wlmi_csr_host matrix = a, transposed = t;
  wlmi_edge_share t_shares[EDGES];
  float t_small[EDGES], c1[ROWS * N], c2[ROWS * N], ones[ROWS * N];
  memcpy(moved_x, x, sizeof moved_x);
  for (int i = 0; i < COLS * N; i++) moved_b[i] = b[i] / 8;
  for (int i = 0; i < EDGES; i++) small[i] = values[i] / 4;
  for (int i = 0; i < EDGES; i++) t_small[i] = small[t_order[i]];
  for (int i = 0; i < EDGES && shares; i++) t_shares[i] = shares[t_order[i]];
  for (int i = 0; i < ROWS * N; i++) ones[i] = 1;
  matrix.values = small;
  matrix.shares = shares;
  transposed.values = t_small;
  transposed.shares = shares ? t_shares : NULL;
  MAKE(case_of_text, forward, text, 1, 0);
  forward.problem.dense_type = WLM_F32;
  forward.walk.a = &matrix;
  bind(&forward, "l", l);
  bind(&forward, "r", r);
  bind(&forward, "x", moved_x);
  bind(&forward, "b", moved_b);
  run(&forward);
  float pairs[2 * ROWS];
  for (int i = 0; i < 2 * ROWS; i++) pairs[i] = (float)forward.value[0][i];
  for (int i = 0; i < ROWS * N; i++) c1[i] = (float)forward.value[1][i], c2[i] = (float)forward.value[2][i];
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    HELD(wlmi_text) derived = {0};
    int transpose;
    assert_status(
        WLM_OK, wlmi_message_gradient(&forward.message, cases[k].by, &forward.problem.sampling, &derived, &transpose));
    MAKE(case_of_text, g, derived.data, 1, transpose);
    g.walk.a = transpose ? &transposed : &matrix;
    bind(&g, "l", l);
    bind(&g, "r", r);
    bind(&g, "x", moved_x);
    bind(&g, "b", moved_b);
    bind(&g, "l0", pairs);
    bind(&g, "s0", pairs);
    bind(&g, "c1", c1);
    bind(&g, "c2", c2);
    for (const char *const *name = (const char *const[]){"d1", "d2", "d3", NULL}; *name; name++) bind(&g, *name, ones);
    run(&g);
    for (int i = 0; i < cases[k].lines * cases[k].width; i++) {
      const int is_line = cases[k].width == 1 && !cases[k].of_edges; /* whose columns share it */
      const double got = is_line ? g.value[0][i * N] + g.value[0][i * N + 1] : g.value[0][i];
      const float old = cases[k].memory[i], step = 1.F / 256;
      double total[2] = {0, 0};
      for (int side = 0; side < 2; side++) {
        cases[k].memory[i] = old + (side ? step : -step);
        run(&forward);
        for (int result = 1; result < 4; result++)
          for (int j = 0; j < ROWS * N; j++) total[side] += forward.value[result][j];
      }
      cases[k].memory[i] = old;
      const double quotient = (total[1] - total[0]) / 2 / (double)step;
      if (!(fabs(got - quotient) <= 2e-4 * (1 + fabs(quotient))))
        fail_msg("%s[%d]: %g instead of %g; %s", cases[k].by, i, got, quotient, derived.data);
    }
  }
}

TEST(gradients_of_softmax) {
  wlmi_edge_share taken[EDGES] = {{1, 1}, {2, 1}, {3, 1}, {0, 1}, {1, 1}, {2, 1}};
  check_gradients_of_softmax(NULL);
  check_gradients_of_softmax(taken);
}

/* Runs a text with an operand of its own; `scalar` is the second operand, and ld the first one's leading dimension. */
static void check_operand(const char *text, int64_t heads, const float *memory, double scalar, int64_t ld,
                          const double wanted[8]) {
  MAKE(case_of_text, c, text, heads, 0);
  c.call.operands[0] = memory, c.call.scalars[1] = scalar, c.call.operand_ld[0] = ld;
  run(&c);
  assert_values(c.value[0], wanted, 8, text);
}

TEST(widths) {
  static const float one[] = {100, 200, 300, 400}, lines[] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const float by_head[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}, two[] = {0.5f, 2};
  check_operand("h:row:1;sum=h*b", 1, one, 0, 0, (const double[]){1300, 500, 0, 0, 2100, 600, 10800, 1600});
  check_operand("q:edge:heads;sum=q", 2, by_head, 0, 0, (const double[]){3, 30, 0, 0, 3, 30, 15, 150});
  check_operand("q:edge:heads;sum=q", 1, by_head, 0, 0, (const double[]){11, 11, 0, 0, 2, 2, 20 + 3 + 30, 53});
  check_operand("g:all;s:all:1;sum=g*s*b", 1, two, 3, 0, (const double[]){19.5, 30, 0, 0, 10.5, 12, 40.5, 24});
  /* a leading dimension: the lines overlap in this array */
  check_operand("h:row;sum=h*b", 1, lines, 0, 2, (const double[]){13, 10, 0, 0, 35, 12, 7 * 27, 32});
}

TEST(heads_of_values) {
  float by_head[2 * EDGES];
  wlmi_csr_host with_heads = a;
  for (int p = 0; p < EDGES; p++) by_head[2 * p] = values[p], by_head[2 * p + 1] = 10 * values[p];
  with_heads.values = by_head;
  MAKE(case_of_text, c, "sum=a*b;edge_sum=a", 2, 0);
  c.walk.a = &with_heads;
  run(&c);
  assert_values(c.value[0], (const double[]){-24, 50, 0, 0, 28, 80, 46, 20}, 8, "values of heads");
  assert_values(c.value[1], (const double[]){2, 20, -3, -30, 4, 40, 1, 10, 5, 50, -2, -20}, 12, "values of heads");
  with_heads.values = NULL;
  run(&c);
  assert_values(c.value[0], (const double[]){13, 5, 0, 0, 7, 2, 27, 4}, 8, "no values");
}

static void assert_positions(const case_of_text *c, int r, const int64_t *wanted, int count) {
  for (int i = 0; i < count; i++)
    if (c->positions[r][i] != wanted[i])
      fail_msg("position [%d] is %d instead of %d", i, (int)c->positions[r][i], (int)wanted[i]);
}

TEST(positions) {
  static const float with_nan[] = {NAN, 5, 5, 5, 3, NAN};
  MAKE(case_of_text, c, "max=b;min=b", 1, 0);
  run(&c);
  assert_positions(&c, 0, (const int64_t[]){1, 0, -1, -1, 2, 2, 3, 5}, 8);
  assert_positions(&c, 1, (const int64_t[]){0, 1, -1, -1, 2, 2, 5, 3}, 8);
  bind(&c, "b", with_nan); /* the first NaN wins; of equal ones the lowest position */
  run(&c);
  assert_positions(&c, 0, (const int64_t[]){1, 0, -1, -1, 2, 2, 3, 3}, 8);
  assert_positions(&c, 1, (const int64_t[]){1, 0, -1, -1, 2, 2, 3, 3}, 8);
  assert_values(c.value[0], (const double[]){NAN, NAN, 0, 0, 5, 5, NAN, 5}, 8, "max with NaN");
  assert_values(c.value[1], (const double[]){NAN, NAN, 0, 0, 5, 5, NAN, 5}, 8, "min with NaN");

  MAKE(case_of_text, t, "max=a*x;min=x*0", 1, 1);
  run(&t);
  assert_values(t.value[0], (const double[]){20, 3, 12, 8, 2, -2}, 6, "max of columns");
  assert_positions(&t, 0, (const int64_t[]){4, 1, 2, 5, 0, 0}, 6); /* positions in A */
  assert_positions(&t, 1, (const int64_t[]){1, 1, 2, 2, 0, 0}, 6);
}

TEST(wins) {
  static const int32_t narrow[] = {1, 0, -1, -1, 2, -1, 4, 5};
  static const int64_t wide[] = {1, 0, -1, -1, 2, -1, 4, 5};
  for (int transpose = 0; transpose < 2; transpose++)
    for (int type = 0; type < 2; type++) {
      MAKE(case_of_text, c, "d0:row;w0:row:wins;sum=d0*w0", 1, transpose);
      c.problem.argmax_type = type ? WLM_I64 : WLM_I32;
      bind(&c, "d0", x);
      bind(&c, "w0", type ? (const void *)wide : narrow);
      run(&c);
      if (transpose)
        assert_values(c.value[0], (const double[]){1 + 4, 0, 3, -4, 0, -1}, 6, "wins of columns");
      else
        assert_values(c.value[0], (const double[]){1, -1, 0, 0, 3, 0, 4, -4}, 8, "wins");
    }
}

/* Some rows, some of them without their edges, and no edge results at all. */
TEST(chosen_rows) {
  static const int64_t ids[] = {3, 0, 2}, edge_first[] = {0, 0, 2, 3};
  MAKE(case_of_text, c, "sum=b;edge=x*b", 1, 0);
  wlmi_reference_result to[] = {{c.value[0], NULL, NULL}, {c.value[1], c.scale[1], NULL}};
  c.value[1][6] = 99;
  assert_status(WLM_OK, wlmi_reference_message(&c.walk, ids, 3, edge_first, to));
  assert_values(c.value[0], (const double[]){27, 4, 13, 5, 7, 2}, 6, "rows");
  assert_values(c.value[1], (const double[]){3, -4, 10, -1, 21, -6, 99}, 7, "edges");
  to[1].value = NULL;
  assert_status(WLM_OK, wlmi_reference_message(&c.walk, ids, 3, NULL, to));
}

/* Blocks of columns: more than one, and the last one partly used. */
TEST(many_columns) {
  enum { WIDE = 150, HEADS = 3 };
  static float wide_b[COLS * WIDE];
  static double sum[ROWS * WIDE], edge_sum[EDGES * HEADS];
  for (int i = 0; i < COLS * WIDE; i++) wide_b[i] = (float)(i % 17 - 8);
  MAKE(case_of_text, c, "sum=b;edge_sum=b", 1, 0);
  c.problem.n = WIDE;
  c.problem.heads = HEADS;
  bind(&c, "b", wide_b);
  wlmi_reference_result to[] = {{sum, NULL, NULL}, {edge_sum, NULL, NULL}};
  assert_status(WLM_OK, wlmi_reference_message(&c.walk, NULL, ROWS, rowptr, to));
  for (int row = 0; row < ROWS; row++)
    for (int j = 0; j < WIDE; j++) {
      double wanted = 0;
      for (int64_t p = rowptr[row]; p < rowptr[row + 1]; p++) wanted += (double)wide_b[colind[p] * WIDE + j];
      assert_true(sum[row * WIDE + j] == wanted);
    }
  for (int p = 0; p < EDGES; p++)
    for (int head = 0; head < HEADS; head++) {
      double wanted = 0;
      for (int j = head * WIDE / HEADS; j < (head + 1) * WIDE / HEADS; j++)
        wanted += (double)wide_b[colind[p] * WIDE + j];
      assert_true(edge_sum[p * HEADS + head] == wanted);
    }
}

/* Sums of products and products agree with the reference of SpMM; maxima are measured by the largest message. */
TEST(scales) {
  double product[ROWS * N], its_scale[ROWS * N];
  wlm_problem sum = PROBLEM(.n = N);
  MAKE(case_of_text, c, "sum=a*b;max=b-x;prod=b;sum=x;edge_sum=x", 1, 0);
  run(&c);
  wlm_execute_args call = EXECUTE_ARGS(.b = b);
  assert_status(WLM_OK,
                wlmi_reference_rows(&a, &sum, &call, NULL, ROWS, &(wlmi_reference_result){product, its_scale, NULL}));
  assert_values(c.value[0], product, ROWS * N, "a sum of products");
  assert_values(c.scale[0], its_scale, ROWS * N, "its scale");
  assert_values(c.scale[1], (const double[]){11, 5, 0, 0, 10, 5, 14, 6}, 8, "the scale of a maximum");
  assert_values(c.scale[2], (const double[]){2 * 30, 2 * 4, 0, 0, 7, 2, 3 * 700, 3 * 2}, 8, "that of a product");
  assert_true(fabs(c.scale[3][0] - sqrt(2) * 2) < 1e-12); /* equal terms: their errors add up */
  assert_true(fabs(c.scale[4][0] - 2) < 1e-12);
}

/* The scale of a sum of two terms of 1: sqrt(2) times as much if they may be equal, so that their errors add up. They
 * differ where an operand in the caller's memory differs from edge to edge. */
TEST(scales_of_equal_terms) {
  static float ones[EDGES * N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const struct {
    const char *text;
    int transpose, is_even;
  } cases[] = {{"o:column;sum=o", 0, 0}, {"o:column;sum=o", 1, 1}, {"o:row;sum=o", 0, 1},
               {"o:row;sum=o", 1, 0},    {"o:row:1;sum=o", 1, 0},  {"o:row:base;sum=o", 1, 1},
               {"o:edge;sum=o", 0, 0},   {"o:edge;sum=o", 1, 0},   {"o:edge:heads;sum=o", 0, 0},
               {"o:all;sum=o", 0, 1},    {"o:all:1;sum=o", 0, 1},  {"sum=a", 0, 1},
               {"sum=a", 1, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    MAKE(case_of_text, c, cases[i].text, 1, cases[i].transpose);
    wlmi_csr_host csr = *c.walk.a;
    csr.values = ones;
    c.walk.a = &csr;
    bind(&c, "o", ones);
    c.call.scalars[0] = 1;
    run(&c);
    const double *scale = c.scale[0] + (cases[i].transpose ? N : 0); /* of a row with two edges */
    if (fabs(scale[0] - (cases[i].is_even ? sqrt(2) : 1) * 2) > 1e-12) fail_msg("%s: %g", cases[i].text, scale[0]);
  }
}

TEST(one_message) {
  double value, size;
  MAKE(case_of_text, c, "sum=b;max=a*x", 1, 1);
  wlmi_reference_message_at(&c.walk, 1, 0, 2, 1, &value, &size);
  assert_true(value == -20 && size == 20);
}

/* The gradient of the product of b - h over the edges of each row, by h, of ones. */
static void check_product(const float h[ROWS * N], const double wanted[ROWS * N]) {
  const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
  float products[ROWS * N], zeros[ROWS * N];
  HELD(wlmi_text) text = {0};
  MAKE(case_of_text, c, "h:row;prod=b-h==0?1:b-h;sum=b-h==0?1:0", 1, 0);
  bind(&c, "h", h);
  run(&c);
  for (int i = 0; i < ROWS * N; i++) products[i] = (float)c.value[0][i], zeros[i] = (float)c.value[1][i];
  MAKE(case_of_text, product, "h:row;prod=b-h", 1, 0);
  GET(int, transpose, wlmi_message_gradient(&product.message, "h", &product.problem.sampling, &text, &transpose));
  MAKE(case_of_text, gradient, text.data, 1, transpose);
  bind(&gradient, "h", h);
  bind(&gradient, "d0", ones);
  bind(&gradient, "p0", products);
  bind(&gradient, "z0", zeros);
  run(&gradient);
  assert_values(gradient.value[0], wanted, ROWS * N, text.data);
}

/* Each message gets the product of the others, also where one or several are 0. */
TEST(gradients_of_products) {
  check_product(x, (const double[]){-11, -7, 0, 0, -1, -1, -72, -85});
  check_product((const float[]){3, 1, 0, 0, 7, 5, 10, 2}, (const double[]){-7, -3, 0, 0, -1, -1, 0, -1});
}
