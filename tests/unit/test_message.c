/* Messages: which texts are accepted, their normal form, errors, and derivatives. */
#include "core/problem/message.h"
#include "core/problem/operator.h"
#include "core/problem/spec.h"
#include "core/reference/evaluate.h"
#include "support/failing_malloc.h"
#include "support/test.h"

/* ---- texts ---------------------------------------------------------------------------------------------- */

static void check_normal(const char *text, const char *wanted) {
  HELD(wlmi_message) message;
  HELD(wlmi_text) printed = {0};
  if (wlmi_message_parse(text, &message) != WLM_OK) fail_msg("%s: %s", text, wlm_error_detail());
  wlmi_message_print(&message, &printed);
  assert_string_equal(printed.data, wanted);
}

/* As many operands and sums as there may be. */
#define MOST                                                                                                        \
  "h0:row:1;h1:row:1;h2:row:1;h3:row:1;h4:row:1;h5:row:1;h6:row:1;h7:row:1;h8:row:1;h9:row:1;g0:row:1;g1:row:1;"    \
  "g2:row:1;g3:row:1;g4:row:1;g5:row:1;s0:edge_sum=h0;s1:edge_sum=h1;s2:edge_sum=h2;s3:edge_sum=h3;s4:edge_sum=h4;" \
  "s5:edge_sum=h5;s6:edge_sum=h6;s7:edge_sum=h7+s0;"                                                                \
  "edge_sum=h8+h9+g0+g1+g2+g3+g4+g5+s0+s1+s2+s3+s4+s5+s6+s7"

TEST(normal_forms) {
  static const struct {
    const char *text, *normal;
  } cases[] = {
      {"sum=b", "sum=b"},
      {"\t sum = relu( b + e ) ;", "sum=relu(b+e)"},
      {"sum=max(b,(e))", "sum=fmax(b,e)"},
      {"mean=b; max=b ;min=b", "mean=b;max=b;min=b"},
      {"max=x;max=x", "max=x;max=x"},
      {"edge_sum=x*b;edge=a;prod=1+b", "edge_sum=x*b;edge=a;prod=1+b"},
      {"x:row:1; k : column : 1; sum=tanh(x+k)*a*b", "x:row:1;k:column:1;sum=tanh(x+k)*a*b"},
      {"x:row:n;b:column;sum=x*b", "sum=x*b"}, /* as they are without a declaration */
      {"a:edge:heads;degree:row:1;sum=a/degree", "sum=a/degree"},
      {"b:row;sum=b", "b:row;sum=b"},
      {"s:all:1;t:all:heads;u:all;sum=s*t*u", "s:all:1;t:all:heads;u:all;sum=s*t*u"},
      {"d0:row;w0:row:wins;sum=d0*w0", "d0:row;w0:row:wins;sum=d0*w0"},
      {"sum=b>0?b:0", "sum=b>0?b:0"},
      {"sum=1", "sum=1"},
      {"sum=.50*b+1e3-2.f", "sum=0.5*b+1000-2"},
      {"sum=((a)*(b))+((e))", "sum=a*b+e"},
      {"sum=(a-b)-(x-y)", "sum=a-b-(x-y)"},
      {"sum=fmaxf(b,0.0)", "sum=fmax(b,0)"},
      {"h : row : n ; max = h", "h:row;max=h"},
      {"e:edge;k:column:n;a:edge:heads;sum=a*k+e", "sum=a*k+e"},
      {"sum=b+e", "sum=b+e"}, /* a float sum in another order is another message */
      {"sum=e+b", "sum=e+b"},
      {"score=a;softmax=b", "score=a;softmax=b"},
      {"l:row:heads; s : edge_sum = x * k; score = l*(s); softmax=b; sum=s?1:b",
       "l:row:heads;s:edge_sum=x*k;score=l*s;softmax=b;sum=s?1:b"},
      {"score=a;s:edge_sum=b;t:edge_sum=s*s;sum=t", "s:edge_sum=b;t:edge_sum=s*s;score=a;sum=t"},
      {"l:row:base;s:row:scale;sum=l*b*s", "l:row:base;s:row:scale;sum=l*b*s"},
      {"name_of_15_abcd:edge;sum=name_of_15_abcd", "name_of_15_abcd:edge;sum=name_of_15_abcd"},
      {MOST, MOST},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_normal(cases[i].text, cases[i].normal);
    check_normal(cases[i].normal, cases[i].normal);
  }
}

static const wlm_sampling all = {.sample = WLM_SAMPLE_NONE};

static void assert_operand(const wlmi_message *m, int i, const char *name, wlm_place place, wlm_width width,
                           wlmi_source source) {
  assert_string_equal(m->name[i], name);
  assert_ptr_equal(m->names[i], m->name[i]);
  assert_int_equal(m->operand[i].place, place);
  assert_int_equal(m->operand[i].width, width);
  assert_int_equal(m->operand[i].source, source);
}

TEST(tables) {
  HOLD(wlmi_message, m, wlmi_message_parse("w:row:wins;s:all:1;k:edge:heads;max=k*x/degree*w;edge=a*s+b+y+e", &m));
  assert_int_equal(m.operands, 9);
  assert_operand(&m, 0, "w", WLM_PLACE_ROW, WLM_WIDTH_WINS, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 1, "s", WLM_PLACE_ALL, WLM_WIDTH_ONE, WLMI_SOURCE_NUMBER);
  assert_operand(&m, 2, "k", WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 3, "a", WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_VALUES);
  assert_operand(&m, 4, "b", WLM_PLACE_COLUMN, WLM_WIDTH_N, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 5, "e", WLM_PLACE_EDGE, WLM_WIDTH_N, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 6, "x", WLM_PLACE_ROW, WLM_WIDTH_N, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 7, "y", WLM_PLACE_ROW, WLM_WIDTH_N, WLMI_SOURCE_MEMORY);
  assert_operand(&m, 8, "degree", WLM_PLACE_ROW, WLM_WIDTH_ONE, WLMI_SOURCE_DEGREE);
  assert_int_equal(m.results, 2);
  assert_int_equal(m.result[0].kind, WLMI_RESULT_MAX);
  assert_true(wlmi_expression_uses(&m.result[0].value, 2) && !wlmi_expression_uses(&m.result[0].value, 3));
  assert_int_equal(m.result[1].kind, WLMI_RESULT_EDGE);
  wlmi_message_release(&m);
  assert_status(WLM_OK, wlmi_message_parse("kept:edge:heads;sum=kept*b", &m));
  assert_int_equal(m.operands, 2);
  assert_operand(&m, 1, "kept", WLM_PLACE_EDGE, WLM_WIDTH_HEADS, WLMI_SOURCE_KEPT);
}

TEST(errors) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "there is no result; the least message is 'sum=b'"},
      {"x:row", "there is no result"},
      {";", "there is no result"},
      {";sum=b", "'' is no result; results are sum, mean, max, min, prod, softmax, score, edge and edge_sum"},
      {"total=b", "'total' is no result"},
      {"b", "'b' is no result"},
      {"sum", "op:sum, column 1 of '': a number, an operand"},
      {"sum=", "op:sum, column 1"},
      {"sum=b+q",
       "op:sum, column 3 of 'b+q': 'q' is not known here; the operands of sum are: a, b, e, k, x, y, degree, kept;"},
      {"mean=b;edge=q", "op:edge, column 1 of 'q'"},
      {"sum=swish(b)", "functions are those of C's math.h (fmax, exp, tanh ...), relu, leaky_relu and sigmoid"},
      {"sum=acc+b", "'acc' is not known here"},
      {"2x:row;sum=b", "'2x' is no name for an operand; a name has letters, digits and _, at most 15"},
      {"h-h:row;sum=b", "'h-h' is no name"},
      {":row;sum=b", "'' is no name"},
      {"tanh:row;sum=b", "'tanh' is no name"},
      {"inf:row;sum=b", "'inf' is no name"},
      {"a_name_of_16_abc:row;sum=b", "'a_name_of_16_abc' is no name"},
      {"\x01\x80:row;sum=b", "' is no name"},
      {"h:node;sum=h", "operand h: 'node' is no place; places are row, column, edge and all"},
      {"h:;sum=h", "operand h: '' is no place"},
      {"h:row:2;sum=h",
       "operand h: '2' is no width of row; widths are n, heads and 1, and wins, base and scale for a row"},
      {"h:row:n:n;sum=h", "operand h: 'n:n' is no width"},
      {"h:edge:wins;sum=h", "operand h: 'wins' is no width of edge"},
      {"h:column:base;sum=h", "operand h: 'base' is no width of column"},
      {"h:edge:scale;sum=h", "operand h: 'scale' is no width of edge"},
      {"softmax=b", "softmax needs a score before it"},
      {"softmax=b;score=a", "softmax needs a score before it"},
      {"score=a;score=a;softmax=b", "more than one score"},
      {"score=b;softmax=b",
       "op:score: operand b has a number for each column, and a score is one for a head; use a sum "
       "over the columns, such as s:edge_sum=b"},
      {"w:row:wins;score=w;softmax=b", "op:score: operand w has"},
      {"s:edge_sum=x*b;sum=b", "the sum s is declared and not used; leave it out"},
      {"s:edge_sum=t;t:edge_sum=b;sum=s", "op:edge_sum, column 1 of 't'"},
      {"s:edge_sum=b;s:edge_sum=x;sum=s", "'s' is no name for a sum, or that of something else; use another one"},
      {"k:edge_sum=b;sum=k", "'k' is no name for a sum"},
      {"exp:edge_sum=b;sum=b", "'exp' is no name for a sum"},
      {"s:edge_sum=b;h:row;sum=s*h", "an operand is declared behind a result"},
      {"s0:edge_sum=b;s1:edge_sum=b;s2:edge_sum=b;s3:edge_sum=b;s4:edge_sum=b;s5:edge_sum=b;s6:edge_sum=b;"
       "s7:edge_sum=b;s8:edge_sum=b;sum=s0",
       "more than 8 sums"},
      {"h:row;h:row;sum=h", "operand h is declared twice; declare it once"},
      {"b:row;b:row;sum=b", "operand b is declared twice"},
      {"b:column;b:row;sum=b", "operand b is declared twice"},
      {"b:column;b:column;sum=b", "operand b is declared twice"},
      {"a:edge;sum=a", "operand a is edge:heads and nothing else; use another name"},
      {"kept:row;sum=kept", "operand kept is edge:heads and nothing else; use another name"},
      {"degree:row;sum=b", "operand degree is row:1 and nothing else"},
      {"h:row;sum=b", "operand h is declared and not used; leave it out"},
      {"sum=b;h:row;max=h", "an operand is declared behind a result; declare operands first"},
      {"sum=b;sum=b;sum=b;sum=b;sum=b;sum=b;sum=b", "more than 6 results; leave some out"},
      {"h0:row;h1:row;h2:row;h3:row;h4:row;h5:row;h6:row;h7:row;h8:row;h9:row;g0:row;g1:row;g2:row;g3:row;g4:row;"
       "g5:row;g6:row;sum=b",
       "more than 16 operands"},
      {"h0:row;h1:row;h2:row;h3:row;h4:row;h5:row;h6:row;h7:row;h8:row;h9:row;g0:row;g1:row;g2:row;g3:row;g4:row;"
       "sum=h0+h1+h2+h3+h4+h5+h6+h7+h8+h9+g0+g1+g2+g3+g4+a+b",
       "more than 16 operands"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlmi_message m;
    if (wlmi_message_parse(cases[i].text, &m) != WLM_ERR_INVALID_ARGUMENT) fail_msg("%s is accepted", cases[i].text);
    assert_contains(wlm_error_detail(), cases[i].says);
    assert_int_equal(m.results, 0);
  }
}

/* ---- problems ------------------------------------------------------------------------------------------- */

static wlm_problem problem_of(const char *text) {
  return (wlm_problem)PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = text, .n = 32);
}

static void expect_refusal(wlm_problem problem, wlm_status status, const char *says) {
  const wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec;
  assert_status(status, wlmi_spec_make(&problem, &csr, &spec));
  assert_contains(wlm_error_detail(), says);
}

TEST(refusals) {
  wlm_problem p = problem_of("sum=b;mean=b");
  p.sampling = (wlm_sampling){.sample = WLM_SAMPLE_BUCKET, .norm = WLM_NORM_KEPT, .width = 32};
  expect_refusal(p, WLM_ERR_UNSUPPORTED, "norm with the result mean has no meaning");
  p = problem_of("sum=b;edge=b");
  p.epilogue.bias = 1;
  expect_refusal(p, WLM_ERR_UNSUPPORTED, "a message with an epilogue has results of rows alone");
  p = problem_of("score=a;softmax=b");
  p.sampling = (wlm_sampling){.sample = WLM_SAMPLE_BUCKET, .norm = WLM_NORM_KEPT, .width = 32};
  expect_refusal(p, WLM_ERR_UNSUPPORTED, "norm with the result softmax has no meaning");
  expect_refusal(problem_of("s:edge_sum=b*1e39;sum=s"), WLM_ERR_INVALID_ARGUMENT, "op:edge_sum: 1e+39 is beyond");
  p = problem_of(NULL);
  p.reduce = WLM_SUM;
  expect_refusal(p, WLM_ERR_UNSUPPORTED, "a message needs its text");
  p = problem_of("sum=b;mean=b");
  p.want_argmax = 1;
  expect_refusal(p, WLM_ERR_UNSUPPORTED, "want_argmax needs a result max or min");
  expect_refusal(problem_of("sum=b*1e39"), WLM_ERR_INVALID_ARGUMENT, "op:sum: 1e+39 is beyond the range of float");
  expect_refusal(problem_of("sum=b;edge=q"), WLM_ERR_INVALID_ARGUMENT, "op:edge, column 1");
  char text[1200] = "sum=b";
  while (strlen(text) < 1100) strcat(text, "+b");
  expect_refusal(problem_of(text), WLM_ERR_INVALID_ARGUMENT, "wlm_problem.custom has 1101 characters");
  p = problem_of("sum=b");
  p.heads = 5;
  expect_refusal(p, WLM_ERR_INVALID_ARGUMENT, "wlm_problem.heads is 5");
}

/* Equal problems get one key: the type of positions counts only where they are written or read. */
TEST(positions_in_keys) {
  static const struct {
    const char *text;
    int want_argmax;
    wlm_index type;
    const char *ending;
  } cases[] = {
      {"sum=relu(b+e)", 0, WLM_I64, "operation=message"},
      {"max=b", 0, WLM_I64, "operation=message"},
      {"max=b", 1, WLM_I64, "operation=message,arg=i64"},
      {"max=b", 1, WLM_I32, "operation=message,arg=i32"},
      {"w:row:wins;sum=w*b", 0, WLM_I64, "operation=message,wins=i64"},
      {"w:row:wins;sum=w*b", 0, WLM_I32, "operation=message"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const wlm_csr csr = WLM_CSR_INIT;
    wlm_problem p = problem_of(cases[i].text);
    char key[WLMI_SPEC_KEY];
    p.want_argmax = cases[i].want_argmax;
    p.argmax_type = cases[i].type;
    GET(wlmi_spec, spec, wlmi_spec_make(&p, &csr, &spec));
    wlmi_spec_key(&spec, key);
    assert_string_equal(strstr(key, "operation="), cases[i].ending);
  }
}

TEST(positions_beyond_their_type) {
  static const struct {
    const char *text;
    int want_argmax;
    wlm_index type;
    wlm_status status;
  } cases[] = {
      {"w:row:wins;sum=w*b", 0, WLM_I32, WLM_ERR_OVERFLOW},
      {"w:row:wins;sum=w*b", 0, WLM_I64, WLM_OK},
      {"max=b", 1, WLM_I32, WLM_ERR_OVERFLOW},
      {"max=b", 0, WLM_I32, WLM_OK},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wlm_problem p = problem_of(cases[i].text);
    wlmi_spec spec;
    wlm_csr csr = CSR(.nnz = (int64_t)INT32_MAX + 1);
    p.want_argmax = cases[i].want_argmax;
    p.argmax_type = cases[i].type;
    assert_status(cases[i].status, wlmi_spec_make(&p, &csr, &spec));
  }
}

/* ---- derivatives ---------------------------------------------------------------------------------------- */

enum { OPERANDS = 3 };
static const char *const names[OPERANDS] = {"u", "v", "w"};

static wlmi_expression parsed(const char *text) {
  wlmi_expression e;
  if (wlmi_expression_parse_named("test", text, strlen(text), names, OPERANDS, &e) != WLM_OK)
    fail_msg("%s: %s", text, wlm_error_detail());
  return e;
}

static double value_at(const wlmi_expression *e, const double at[OPERANDS]) {
  wlmi_column_block blocks[OPERANDS], result;
  const wlmi_column_block *operands[OPERANDS];
  for (int i = 0; i < OPERANDS; i++) {
    operands[i] = &blocks[i];
    wlmi_block_fill(&blocks[i], 1, at[i]);
  }
  wlmi_evaluate(e, operands, 0, 1, 1e-16, &result);
  return result.value[0];
}

/* Against central differences, whose error is about step^2; leaves out points where either is not finite. */
static int check_derivative(const char *text, int operand, const double at[OPERANDS]) {
  static const double step = 1e-5;
  HELD(wlmi_expression) e = parsed(text);
  HELD(wlmi_text) slope = {0};
  double before[OPERANDS], behind[OPERANDS];
  memcpy(before, at, sizeof before);
  memcpy(behind, at, sizeof behind);
  before[operand] -= step;
  behind[operand] += step;
  const double wanted = (value_at(&e, behind) - value_at(&e, before)) / (2 * step);
  assert_status(WLM_OK, wlmi_expression_derive(&e, operand, &slope));
  HELD(wlmi_expression) derived = parsed(slope.size ? slope.data : "0");
  const double got = value_at(&derived, at);
  const int counts = isfinite(wanted);
  if (counts && !(fabs(got - wanted) <= 1e-6 * (1 + fabs(wanted))))
    fail_msg("d(%s)/d%s = %s is %g at (%g, %g, %g), by differences %g", text, names[operand],
             slope.size ? slope.data : "0", got, at[0], at[1], at[2], wanted);
  return counts;
}

/* No two are equal, and none lies at a step of a function. */
static const double points[][OPERANDS] = {
    {0.3, 0.7, -0.4}, {-0.65, 0.2, 1.3}, {0.45, -0.35, 0.1}, {-0.15, -0.85, -1.7}, {1.4, 2.6, 0.9}, {-2.3, 1.1, 0.55},
};
enum { POINTS = sizeof points / sizeof *points };

static void check_everywhere(const char *text) {
  for (int operand = 0; operand < OPERANDS; operand++) {
    int count = 0;
    for (int i = 0; i < POINTS; i++) count += check_derivative(text, operand, points[i]);
    if (count < 2) fail_msg("%s has values at %d of %d points", text, count, POINTS);
  }
}

TEST(derivatives_of_functions) {
  static const char *const arguments[] = {"(u)", "(u,v)", "(u,v,w)"};
  static const char *const inner[] = {"(u*v)", "(u*v,v-w)", "(u*v,v-w,w*w)"};
  for (int i = 0; i < WLMI_FUNCTIONS; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s%s", wlmi_functions[i].name, arguments[wlmi_functions[i].arity - 1]);
    check_everywhere(text);
    snprintf(text, sizeof text, "%s%s", wlmi_functions[i].name, inner[wlmi_functions[i].arity - 1]);
    if (strcmp(wlmi_functions[i].name, "log") && strcmp(wlmi_functions[i].name, "sqrt")) check_everywhere(text);
  }
}

/* Where a factor is 0 and another infinite; as PyTorch's. */
TEST(derivatives_of_powers_of_zero) {
  static const struct {
    const char *text;
    int operand;
    double at[OPERANDS], wanted;
  } cases[] = {{"pow(u,0)", 0, {0, 0, 0}, 0},  {"pow(u,v)", 0, {0, 0, 0}, 0}, {"pow(u,v)", 1, {0, 0, 0}, 0},
               {"pow(u,v)", 1, {0, 2, 0}, 0},  {"pow(u,v)", 0, {0, 1, 0}, 1}, {"pow(u,2)", 0, {0, 0, 0}, 0},
               {"pow(u,v)", 0, {-2, 0, 0}, 0}, {"pow(u,v)", 0, {3, 1, 0}, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_expression) e = parsed(cases[i].text);
    HELD(wlmi_text) slope = {0};
    assert_status(WLM_OK, wlmi_expression_derive(&e, cases[i].operand, &slope));
    HELD(wlmi_expression) derived = parsed(slope.data);
    if (value_at(&derived, cases[i].at) != cases[i].wanted)
      fail_msg("d(%s)/d%s = %s is %g at (%g, %g)", cases[i].text, names[cases[i].operand], slope.data,
               value_at(&derived, cases[i].at), cases[i].at[0], cases[i].at[1]);
  }
}

TEST(derivatives_of_expressions) {
  static const char *const texts[] = {
      "u",
      "2",
      "-u",
      "- -u*v",
      "u+v-w",
      "u-(v-w)",
      "u-u",
      "u*v*w",
      "u/v/w",
      "1/(u*u+1)",
      "u*u*u/(v*v+2)",
      "relu(u+v)",
      "sigmoid(u+v)*w",
      "relu(u*v+w)",
      "tanh(u+v)*w*v",
      "leaky_relu(u+v,0.2)*w",
      "exp(leaky_relu(u,0.2)-v)",
      "max(u,v)*min(v,w)",
      "max(max(u,v),w)",
      "u>v?u*w:v/2",
      "u>v?1:0",
      "(u>v)*w",
      "(u<0.1?-u:u)*(v>=w?v:w*w)",
      "!(u<v)?u:v*w",
      "u<v&&v<w?u*u:w",
      "u>0||w>0?u*w:-v",
      "floor(u)*v",
      "fmod(u*3,v+2)",
      "pow(u*u+1,2)",
      "pow(u*u+0.5,v)",
      "sqrt(u*u+v*v+w*w)",
      "log(1+exp(u-v))",
      "exp(-(u-v)*(u-v)/2)",
      "erf(u/sqrt(2))*v",
      "sin(u*v)*cos(w)",
      "fma(u,v,w)*u",
      "hypot(u,v)+copysign(u,w)",
      "inf>u?u*v:w",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_everywhere(texts[i]);
}

/* By PyTorch's conventions at the steps themselves. */
TEST(derivatives_at_steps) {
  static const struct {
    const char *text;
    double by_u;
  } cases[] = {{"relu(u)", 0}, {"fabs(u)", 0}, {"floor(u)", 0}, {"round(u)*v", 0}};
  static const double at[OPERANDS] = {0, 1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_expression) e = parsed(cases[i].text);
    HELD(wlmi_text) slope = {0};
    assert_status(WLM_OK, wlmi_expression_derive(&e, 0, &slope));
    HELD(wlmi_expression) derived = parsed(slope.size ? slope.data : "0");
    assert_true(value_at(&derived, at) == cases[i].by_u);
  }
}

/* Without memory for a part, a derivative is an error and not a text without that part. */
TEST(derivatives_without_memory) {
  HELD(wlmi_expression) e = parsed("u>0?exp(u)*u*u/(u+2):-exp(u)/(u*u-3)");
  HELD(wlmi_text) whole = {0};
  int64_t failures = 1;
  assert_status(WLM_OK, wlmi_expression_derive(&e, 0, &whole));
  for (int64_t first = 1; failures; first++)
    for (int alone = 0; alone < 2; alone++) {
      HELD(wlmi_text) slope = {0};
      failing_malloc_begin(first, alone ? 1 : INT64_MAX);
      const wlm_status status = wlmi_expression_derive(&e, 0, &slope);
      failures = failing_malloc_end();
      if (status == WLM_OK) assert_string_equal(slope.data, whole.data);
      if (status != WLM_OK) assert_status(WLM_ERR_OUT_OF_MEMORY, status);
      assert_true(failures || status == WLM_OK);
    }
}

/* The normal form of the derivative of a message by a or b. */
static void check_slope(const wlmi_expression *message, wlmi_operand by, const char *slope) {
  HELD(wlmi_text) text = {0}, normal = {0};
  HELD(wlmi_operator) derived = {0};
  assert_status(WLM_OK, wlmi_expression_derive(message, (int)by, &text));
  assert_status(WLM_OK, wlmi_operator_parse_part(WLMI_PART_MESSAGE, text.size ? text.data : "0", &derived));
  wlmi_expression_print(&derived.parts[WLMI_PART_MESSAGE], WLMI_SPELL_NORMAL, &normal);
  assert_string_equal(normal.data, slope);
}

TEST(slopes_of_built_in_messages) {
  static const char *const slopes[][2] = {
      [WLM_MUL] = {"b", "a"},        [WLM_COPY_B] = {"0", "1"},     [WLM_COPY_A] = {"1", "0"},
      [WLM_ADD] = {"1", "1"},        [WLM_SUB] = {"-1", "1"},       [WLM_RSUB] = {"1", "-1"},
      [WLM_DIV] = {"-b/a/a", "1/a"}, [WLM_RDIV] = {"1/b", "-a/b/b"}}; /* as generator/operators.lua has them */
  for (wlm_message m = WLM_MUL; wlmi_message_name(m); m++) {
    HELD(wlmi_operator) op = {0};
    assert_status(WLM_OK, wlmi_operator_parse_part(WLMI_PART_MESSAGE, wlmi_message_text(m), &op));
    check_slope(&op.parts[WLMI_PART_MESSAGE], WLMI_OPERAND_A, slopes[m][0]);
    check_slope(&op.parts[WLMI_PART_MESSAGE], WLMI_OPERAND_B, slopes[m][1]);
  }
}

/* ---- gradients ------------------------------------------------------------------------------------------ */

TEST(gradient_texts) {
  static const struct {
    const char *text, *by, *gradient;
    int transpose;
  } cases[] = {
      {"sum=a*b", "b", "d0:row;sum=d0*a", 1},
      {"sum=x*b", "x", "d0:row;sum=d0*b", 0},
      {"sum=b+e", "b,e", "d0:row;sum=d0;edge=d0", 1},
      {"sum=b+e", "e", "d0:row;edge=d0", 0},
      {"sum=a*b", "a", "d0:row;edge_sum=d0*b", 0},
      {"mean=b", "b", "d0:row;sum=d0*(1/degree)", 1},
      {"max=b;sum=b", "b", "d0:row;w0:row:wins;d1:row;sum=d0*w0+d1", 1},
      {"edge_sum=x*b", "x", "d0:edge:heads;sum=d0*b", 0},
      {"edge=x*b", "b", "d0:edge;sum=d0*x", 1},
      {"d0:edge;sum=b*d0", "b", "d0:edge;dd0:row;sum=dd0*d0", 1},
      {"x:row:1;sum=x*b", "x", "d0:row;sum=d0*b", 0},
      {"s:all:1;sum=s*b", "b", "s:all:1;d0:row;sum=d0*s", 1},
      {"sum=floor(b)", "b", "sum=0", 1},
      {"prod=b", "b", "d0:row;p0:row;z0:row;sum=d0*(z0==0?p0/b:z0==1&&b==0?p0:0)", 1},
      {"score=a;softmax=b", "b", "l0:row:base;s0:row:scale;d1:row;sum=d1*expscale(a,l0,s0)", 1},
      {"score=a;softmax=b", "a", "l0:row:base;s0:row:scale;d1:row;c1:row;edge_sum=expscale(a,l0,s0)*(d1*(b-c1))", 0},
      {"score=a;softmax=kept*b", "b", "l0:row:base;s0:row:scale;d1:row;sum=d1*expscale(a,l0,s0)*kept", 1},
      {"score=a;softmax=kept*b", "a",
       "l0:row:base;s0:row:scale;d1:row;c1:row;edge_sum=expscale(a,l0,s0)*(d1*(kept*b-c1))", 0},
      {"t:edge_sum=x*b;score=t;softmax=b;sum=t*b", "x",
       "l0:row:base;s0:row:scale;d1:row;c1:row;d2:row;t:edge_sum=x*b;"
       "g0:edge_sum=expscale(t,l0,s0)*(d1*(b-c1))+d2*b;sum=g0*b",
       0},
      {"t:edge_sum=b;u:edge_sum=t*x;sum=u", "b", "d0:row;g1:edge_sum=d0;g0:edge_sum=g1*x;sum=g0", 1},
      {"p1:row;sum=x;prod=p1+b", "p1", "p1:row;d1:row;pp1:row;z1:row;sum=d1*(z1==0?pp1/(p1+b):z1==1&&p1+b==0?pp1:0)",
       0},
      {"prod=a*floor(b)", "a",
       "d0:row;p0:row;z0:row;edge_sum=d0*(z0==0?p0/(a*floor(b)):z0==1&&a*floor(b)==0?p0:0)*floor(b)", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) text = {0};
    int transpose = -1;
    HOLD(wlmi_message, m, wlmi_message_parse(cases[i].text, &m));
    if (wlmi_message_gradient(&m, cases[i].by, &all, &text, &transpose) != WLM_OK)
      fail_msg("%s by %s: %s", cases[i].text, cases[i].by, wlm_error_detail());
    char *normal = text.data;
    HELD(wlmi_message) g;
    HELD(wlmi_text) printed = {0};
    if (wlmi_message_parse(normal, &g) != WLM_OK) fail_msg("%s: %s", normal, wlm_error_detail());
    wlmi_message_print(&g, &printed);
    assert_string_equal(printed.data, cases[i].gradient);
    assert_int_equal(transpose, cases[i].transpose);
  }
}

/* A mean divides by the edges that are kept, and a maximum has one winner. */
TEST(gradients_of_samples) {
  const wlm_sampling sampling = {.sample = WLM_SAMPLE_FASTRAND, .width = 24};
  HELD(wlmi_text) text = {0};
  int transpose = -1;
  HOLD(wlmi_message, m, wlmi_message_parse("mean=b*x;sum=b", &m));
  assert_status(WLM_OK, wlmi_message_gradient(&m, "b", &sampling, &text, &transpose));
  assert_string_equal(text.data, "d0:row;d1:row;sum=d0*(1/fmin(degree,24))*x+d1");
  wlmi_text_release(&text);
  wlmi_message_release(&m);
  assert_status(WLM_OK, wlmi_message_parse("max=b;sum=x", &m));
  assert_status(WLM_ERR_UNSUPPORTED, wlmi_message_gradient(&m, "b", &sampling, &text, &transpose));
  assert_contains(wlm_error_detail(), "of a max with the sample fastrand");
  assert_status(WLM_OK, wlmi_message_gradient(&m, "x", &sampling, &text, &transpose));
}

TEST(gradient_errors) {
  static const struct {
    const char *text, *by;
    wlm_status status;
    const char *says;
  } cases[] = {
      {"sum=b", "", WLM_ERR_INVALID_ARGUMENT, "`by` names no operand"},
      {"sum=b", "x", WLM_ERR_INVALID_ARGUMENT, "'x' is no operand of the message"},
      {"sum=b", "b,bb", WLM_ERR_INVALID_ARGUMENT, "'bb' is no operand"},
      {"sum=b", "b,b,b,b,b,b,b", WLM_ERR_INVALID_ARGUMENT, "more than 6 operands; ask for fewer at once"},
      {"sum=x*b", "x,b", WLM_ERR_INVALID_ARGUMENT, "operands of rows and of columns need two walks"},
      {"s:all:1;sum=s*b", "s", WLM_ERR_UNSUPPORTED, "by s, which has no place"},
      {"sum=b/degree", "degree", WLM_ERR_UNSUPPORTED, "by degree, which has no place"},
      {"sum=kept*b", "kept", WLM_ERR_UNSUPPORTED, "by kept, which has no place"},
      {"w:row:wins;sum=w*b", "w", WLM_ERR_UNSUPPORTED, "by w, which has no place"},
      {"w:row:base;sum=w*b", "w", WLM_ERR_UNSUPPORTED, "by w, which has no place"},
      {"w:row:scale;sum=w*b", "w", WLM_ERR_UNSUPPORTED, "by w, which has no place"},
      {"s:edge_sum=b;sum=s", "s", WLM_ERR_INVALID_ARGUMENT, "'s' is no operand of the message"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) text = {0};
    int transpose = -1;
    HOLD(wlmi_message, m, wlmi_message_parse(cases[i].text, &m));
    assert_status(cases[i].status, wlmi_message_gradient(&m, cases[i].by, &all, &text, &transpose));
    assert_contains(wlm_error_detail(), cases[i].says);
  }
}

/* Which messages move a line of n for each edge. */
TEST(lines_of_edges) {
  static const struct {
    const char *text;
    int has;
  } cases[] = {{"sum=relu(b+e)", 1},     {"w:edge;sum=w*b", 1},      {"sum=b;edge=x*b", 1}, {"sum=x-b", 0},
               {"sum=tanh(x+k)*a*b", 0}, {"w:edge:1;sum=w*b", 0},    {"edge_sum=x*b", 0},   {"score=a;softmax=b", 0},
               {"w:row;sum=w*b", 0},     {"w:edge:heads;sum=w*b", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HOLD(wlmi_message, message, wlmi_message_parse(cases[i].text, &message));
    if (wlmi_message_has_edge_lines(&message) != cases[i].has) fail_msg("%s", cases[i].text);
  }
}
