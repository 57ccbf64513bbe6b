/* User-defined expressions: which are accepted, errors with their column, printing in normal form, and evaluation in
 * float64. */
#include <float.h>

#include "core/base/random.h"
#include "core/problem/operator.h"
#include "core/reference/evaluate.h"
#include "support/meter.h"
#include "support/test.h"

enum { ALL = (1 << WLMI_OPERANDS) - 1 };

static char *spelled(const char *text, wlmi_spelling spelling) {
  HELD(wlmi_expression) e;
  wlmi_text out = {0};
  if (wlmi_expression_parse("test", text, strlen(text), ALL, &e) != WLM_OK) fail_msg("%s", wlm_error_detail());
  wlmi_expression_print(&e, spelling, &out);
  assert_non_null(out.data);
  return out.data;
}

static void check_spelling(const char *text, wlmi_spelling spelling, const char *expected) {
  WLM_FREED char *got = spelled(text, spelling);
  assert_string_equal(got, expected);
}

TEST(spellings) {
  static const struct {
    const char *text, *normal, *c;
  } cases[] = {
      {"a", "a", "a"},
      {" a *\tb ", "a*b", "a*b"},
      {"((a))", "a", "a"},
      {"(a*b)+x", "a*b+x", "a*b+x"},
      {"a*(b+x)", "a*(b+x)", "a*(b+x)"},
      {"a-(b-x)", "a-(b-x)", "a-(b-x)"},
      {"(a-b)-x", "a-b-x", "a-b-x"},
      {"a/(b*x)", "a/(b*x)", "a/(b*x)"},
      {"- -a", "- -a", "- -a"},
      {"a- -b", "a- -b", "a- -b"},
      {"a-(-b*x)", "a- -b*x", "a- -b*x"},
      {"+a", "a", "a"},
      {"-(a+b)", "-(a+b)", "-(a+b)"},
      {"fmaxf(a * b, 0)", "fmax(a*b,0)", "fmaxf(a*b,0.f)"},
      {"max(min(a,b),abs(x))", "fmax(fmin(a,b),fabs(x))", "fmaxf(fminf(a,b),fabsf(x))"},
      {"erff(erf(a))", "erf(erf(a))", "erff(erff(a))"},
      {"relu(a)+leaky_relu(b,.2f)", "relu(a)+leaky_relu(b,0.2)", "wlm_relu(a)+wlm_leaky_relu(b,0.2f)"},
      {"1/2", "1/2", "1.f/2.f"},
      {"1e3+5E-1F+.5+1.", "1000+0.5+0.5+1", "1000.f+0.5f+0.5f+1.f"},
      {"010", "10", "10.f"},
      {"1e30*0.1", "1e+30*0.1", "1e+30f*0.1f"},
      {"-inf+INFINITY", "-inf+inf", "-WLM_INF+WLM_INF"},
      {"acc/degree", "acc/degree", "acc/(wlm_acc_t)degree"},
      {"x > acc ? x : acc", "x>acc?x:acc", "x>acc?x:acc"},
      {"a?b?x:acc:a?b:x", "a?b?x:acc:a?b:x", "a?b?x:acc:a?b:x"},
      {"(a?b:x)?acc:a", "(a?b:x)?acc:a", "(a?b:x)?acc:a"},
      {"(a?b:x)+1", "(a?b:x)+1", "(a?b:x)+1.f"},
      {"a<b", "a<b", "(wlm_acc_t)(a<b)"},
      {"(a<b)*x", "(a<b)*x", "(wlm_acc_t)(a<b)*x"},
      {"a<b?1:x!=x", "a<b?1:x!=x", "a<b?1.f:(wlm_acc_t)(x!=x)"},
      {"a<b&&!(x>=1)||a==b?a:b", "a<b&&!(x>=1)||a==b?a:b", "a<b&&!(x>=1.f)||a==b?a:b"},
      {"a<b<x", "a<b<x", "(wlm_acc_t)((wlm_acc_t)(a<b)<x)"},
      {"fma(a,b,x)", "fma(a,b,x)", "fmaf(a,b,x)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_spelling(cases[i].text, WLMI_SPELL_NORMAL, cases[i].normal);
    check_spelling(cases[i].normal, WLMI_SPELL_NORMAL, cases[i].normal);
    check_spelling(cases[i].text, WLMI_SPELL_FLOAT, cases[i].c);
  }
  check_spelling("max(a,0)*2+relu(b)/degree", WLMI_SPELL_DOUBLE, "fmax(a,0.)*2.+wlm_relu(b)/(wlm_acc_t)degree");
}

static void check_error(const char *part, const char *text, unsigned int operands, const char *says) {
  wlmi_expression e;
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_expression_parse(part, text, strlen(text), operands, &e), says);
  assert_null(e.nodes);
}

TEST(errors) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "op:test, column 1 of '': a number"},
      {"a+", "column 3"},
      {"a b", "column 3 of 'a b': the expression should end here"},
      {"(a", "column 3 of '(a': ')' is expected"},
      {"a)", "column 2"},
      {"a?b", "':' is expected"},
      {"y*2", "column 1 of 'y*2': 'y' is not known here; the operands of test are: a, b, acc, x, degree"},
      {"a*threadIdx", "column 3"},
      {"a+sin", "'(' is expected: sin is a function of 1"},
      {"pow(a)", "column 1 of 'pow(a)': pow takes 2 arguments, not 1"},
      {"pow(a,b,x)", "pow takes 2 arguments, not 3"},
      {"exp()", "exp takes 1 argument, not 0"},
      {"a(b)", "column 2"},
      {"system(a)", "'system' is not known"},
      {"a=b", "column 2 of 'a=b': '=' is not allowed"},
      {"a+=b", "'=' is not allowed"},
      {"a++", "'++' is not allowed"},
      {"--a", "'--' is not allowed"},
      {"a[0]", "'[' is not allowed"},
      {"a;b", "';' is not allowed"},
      {"{a}", "'{' is not allowed"},
      {"\"a\"", "'\"' is not allowed"},
      {"'a'", "''' is not allowed"},
      {"#define a", "'#' is not allowed"},
      {"a\\b", "'\\' is not allowed"},
      {"a\nb", "code 10"},
      {"a\x80", "code 128"},
      {"a%b", "'%' is not allowed"},
      {"a&b", "'&' is not allowed"},
      {"a|b", "'|' is not allowed"},
      {"a^b", "'^' is not allowed"},
      {"~a", "'~' is not allowed"},
      {"a<<b", "column 3"},
      {"a->b", "column 3"},
      {"a.b", "'.' is not allowed"},
      {"(float)a", "'float' is not known"},
      {"a,b", "should end here"},
      {"sizeof(a)", "'sizeof' is not known"},
      {"0x10", "no number"},
      {"1.2.3", "no number"},
      {"1e", "no number"},
      {"1u", "no number"},
      {"1e999", "beyond the range of double"},
      {"/* a */ b", "column 1"},
      {"a // b", "column 4"},
      {"maxf(a,b)", "'maxf' is not known"},
      {"reluf(a)", "'reluf' is not known"},
      {"_a", "'_a' is not known"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_error("test", cases[i].text, ALL, cases[i].says);
  check_error("init", "a", 0, "the operands of init are: none");
  check_error("finish", "x", 1 << WLMI_OPERAND_ACC, "the operands of finish are: acc;");
}

static void check_depth(const char *before, const char *after, int fits) {
  char text[1024] = "a";
  for (int count = 0; count < 200; count++) {
    char longer[1024];
    wlmi_expression e;
    wlm_status status = wlmi_expression_parse("test", text, strlen(text), ALL, &e);
    if (status == WLM_OK) {
      assert_true(e.depth <= WLMI_EXPRESSION_DEPTH);
      wlmi_expression_release(&e);
    } else {
      assert_contains(wlm_error_detail(), "nested too deeply");
      assert_true(count > fits);
      return;
    }
    if (snprintf(longer, sizeof longer, "%s%s%s", before, text, after) >= (int)sizeof longer) fail();
    strcpy(text, longer);
  }
  fail_msg("%s is never too deep", text);
}

TEST(depths) {
  check_depth("(", ")", 20);
  check_depth("- ", "", 20);
  check_depth("a+(", ")", 20);
  check_depth("abs(", ")", 20);
  check_depth("fma(a,b,", ")", 8);
  check_depth("a?b:", "", 8);
  FREED char *text = malloc(WLMI_EXPRESSION_TEXT + 2);
  for (int i = 0; i <= WLMI_EXPRESSION_TEXT; i++) text[i] = i % 2 ? '+' : 'a';
  text[WLMI_EXPRESSION_TEXT + 1] = 0;
  check_error("test", text, ALL, "at most 2048"); /* one character more than allowed */
  text[WLMI_EXPRESSION_TEXT - 1] = 0;
  WLM_FREED char *same = spelled(text, WLMI_SPELL_NORMAL);
  assert_string_equal(same, text);
}

/* Found by fuzzing: the text was short enough, its normal form could not be read again. */
TEST(long_normal_form) {
  char text[WLMI_EXPRESSION_TEXT + 1] = "";
  for (int i = 0; i < 100; i++) strcat(text, "777777777777777777+"); /* in normal form 7.777777777777778e+17+ */
  strcat(text, "a");
  check_error("test", text, ALL, "in normal form");
}

/* ---- operators ------------------------------------------------------------------------------------ */

static void check_operator(const char *text, const char *normal) {
  HELD(wlmi_operator) op;
  HELD(wlmi_text) out = {0};
  if (wlmi_operator_parse(text, &op) != WLM_OK) fail_msg("%s", wlm_error_detail());
  wlmi_operator_print(&op, &out);
  assert_string_equal(out.data, normal);
}

TEST(operators) {
  check_operator("init=0;reduce=acc+x", "init=0;reduce=acc+x");
  check_operator(" finish = acc/degree;reduce= acc + x ; message =a*b; init= 0 ; ",
                 "message=a*b;init=0;reduce=acc+x;finish=acc/degree");
  check_operator("init=1;reduce=acc*x;combine= reduce", "init=1;reduce=acc*x;combine=reduce");
  check_operator("init=1;reduce=acc*x;combine=x*acc", "init=1;reduce=acc*x;combine=x*acc");
  check_operator("init=0;reduce=acc==x?1:0", "init=0;reduce=acc==x?1:0");
  check_operator("order = any;init=0;reduce=acc+x", "init=0;reduce=acc+x;order=any");
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"init=0;reduce=acc+x;order=row", "order can only be any"},
      {"init=0;reduce=acc+x;order=any;order=any", "order is given twice"},
      {"", "init is missing"},
      {";", "init is missing"},
      {"init=0", "reduce is missing"},
      {"reduce=acc", "init is missing"},
      {"init=0;;reduce=acc", "'' is no part"},
      {"init=0;reduce=acc;init=1", "init is given twice"},
      {"init=0;reduce=acc;combine=reduce;combine=acc", "combine is given twice"},
      {"init=0;reduce=acc;combine=acc;combine=reduce", "combine is given twice"},
      {"init=0;reduce=acc;scale=2", "'scale' is no part"},
      {"acc+x", "'acc+x' is no part"},
      {"init=0;reduce=acc+a", "op:reduce, column 5 of 'acc+a'"},
      {"init=x;reduce=acc", "op:init, column 1"},
      {"message=acc;init=0;reduce=acc", "op:message, column 1"},
      {"init=0;reduce=acc;finish=x", "op:finish, column 1"},
      {"init=0;reduce=reduce", "'reduce' is not known"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    wlmi_operator op;
    assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_operator_parse(bad[i].text, &op), bad[i].says);
  }
}

TEST(activations) {
  static const struct {
    const char *text, *normal;
  } cases[] = {{"relu", "relu(x)"}, {" tanh ", "tanh(x)"}, {"abs", "fabs(x)"}, {"x/(1+exp(-x))", "x/(1+exp(-x))"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    HELD(wlmi_text) out = {0};
    HOLD(wlmi_expression, e, wlmi_activation_parse(cases[i].text, &e));
    wlmi_expression_print(&e, WLMI_SPELL_NORMAL, &out);
    assert_string_equal(out.data, cases[i].normal);
  }
  wlmi_expression e;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_activation_parse("leaky_relu", &e));
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_activation_parse("acc", &e), "op:activation");
}

/* ---- random texts --------------------------------------------------------------------------------- */

/* Random texts cause no memory error, and an accepted text is printed in a form that parses to itself. */
TEST(fuzz) {
  static const char *const pieces[] = {
      "a",     "b", "acc", "x", "degree", "0",  "1.5",  "2e-3", "inf", "+",  "-", "*",    "/",
      "(",     ")", "?",   ":", "<",      "<=", "==",   "!",    "&&",  "||", ",", "exp(", "fmaxf(",
      "relu(", " ", "=",   ";", "#",      "\"", "\x01", "zz",   "-",   "(",  ")", ")"};
  enum { PIECES = sizeof pieces / sizeof *pieces };
  wlmi_random random = wlmi_random_for(77, 0, 0);
  int accepted = 0;
  for (int i = 0; i < 200000; i++) {
    char text[256] = "";
    const int64_t count = 1 + wlmi_random_below(&random, 12);
    for (int64_t k = 0; k < count; k++) strcat(text, pieces[wlmi_random_below(&random, PIECES)]);
    const size_t size = strlen(text);
    FREED char *exact = malloc(size); /* without a final NUL, so that ASan sees a read behind the end */
    memcpy(exact, text, size);
    wlmi_expression e;
    if (wlmi_expression_parse("test", exact, size, ALL, &e) == WLM_OK) {
      HELD(wlmi_text) out = {0};
      wlmi_expression_print(&e, WLMI_SPELL_NORMAL, &out);
      WLM_FREED char *again = spelled(out.data, WLMI_SPELL_NORMAL);
      assert_string_equal(again, out.data);
      wlmi_expression_release(&e);
      accepted++;
    }
  }
  assert_true(accepted > 5000);
}

/* ---- without memory ---------------------------------------------------------------------------------- */

/* If an allocation fails, the status says so and no memory leaks. */
TEST(without_memory) {
  static const char text[] =
      "message=a*b+a*b+a*b+a*b+a*b;init=0;reduce=max(acc,x);combine=x>acc?x:acc;finish=acc/degree";
  wlm_status status = WLM_ERR_OUT_OF_MEMORY;
  for (int64_t fail_at = 0; status != WLM_OK; fail_at++) {
    meter m = {.fail_at = fail_at, .failures = 1};
    wlmi_operator op;
    meter_begin(&m);
    status = wlmi_operator_parse(text, &op);
    if (status == WLM_OK) wlmi_operator_release(&op);
    wlm_set_allocator(NULL);
    assert_int_equal(m.live, 0);
    assert_true(status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY);
    assert_true(fail_at < 100 && (status != WLM_OK || fail_at > 4));
  }
}

/* ---- evaluation ------------------------------------------------------------------------------------ */

typedef struct point {
  double value, size;
} point;

/* Evaluates with a = 3, b = -2, acc = 0.25, x = 7, degree = 4, and with these sizes, if given. */
static point evaluate_at(const char *text, const double values[WLMI_OPERANDS], const double *sizes, double step) {
  HELD(wlmi_expression) e;
  wlmi_column_block blocks[WLMI_OPERANDS], result;
  const wlmi_column_block *operands[WLMI_OPERANDS];
  const int width = 3;
  if (wlmi_expression_parse("test", text, strlen(text), ALL, &e) != WLM_OK) fail_msg("%s", wlm_error_detail());
  for (int i = 0; i < WLMI_OPERANDS; i++) {
    wlmi_block_fill(&blocks[i], width, values[i]);
    for (int j = 0; sizes && j < width; j++) blocks[i].size[j] = sizes[i];
    operands[i] = &blocks[i];
  }
  wlmi_evaluate(&e, operands, 0, width, step, &result);
  return (point){result.value[width - 1], result.size[width - 1]};
}

static const double at[WLMI_OPERANDS] = {3, -2, 0.25, 7, 4};

TEST(values) {
  static const struct {
    const char *text;
    double value, size; /* size < 0: not compared */
  } cases[] = {
      {"a*b", -6, 6},
      {"a*b+x", 1, 13},
      {"a-b", 5, 5},
      {"a/b", -1.5, 1.5},
      {"-a", -3, 3},
      {"!a", 0, 0},
      {"!(a-3)", 1, -1},
      {"a>b?x:acc", 7, 7},
      {"a<b?x:acc", 0.25, 0.25},
      {"a>b&&x>=7", 1, -1},
      {"a>b&&x<6", 0, 0},
      {"a<b||x<6", 0, 0},
      {"(a>b)*x", 7, 7},
      {"(a<b)*x", 0, 0},
      {"fmax(a,b)", 3, -1},
      {"min(a,b)", -2, -1},
      {"abs(b)", 2, -1},
      {"relu(b)", 0, -1},
      {"relu(a)", 3, -1},
      {"leaky_relu(b,0.25)", -0.5, -1},
      {"fma(a,b,x)", 1, -1},
      {"pow(b,a)", -8, -1},
      {"degree*acc", 1, 1},
      {"-inf", -INFINITY, 0},
      {"x>-inf?x:1", 7, 7},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const point p = evaluate_at(cases[i].text, at, NULL, 0x1p-21);
    if (p.value != cases[i].value) fail_msg("%s: %g", cases[i].text, p.value);
    if (cases[i].size >= 0 && p.size != cases[i].size) fail_msg("%s: size %g", cases[i].text, p.size);
  }
  for (int i = 0; i < WLMI_FUNCTIONS; i++) {
    const wlmi_function *f = &wlmi_functions[i];
    char text[64];
    snprintf(text, sizeof text, "%s(%s)", f->name, f->arity == 1 ? "acc" : f->arity == 2 ? "acc,a" : "acc,a,b");
    const double expected = f->arity == 1 ? f->one(0.25) : f->arity == 2 ? f->two(0.25, 3) : f->three(0.25, 3, -2);
    const point p = evaluate_at(text, at, NULL, 0x1p-21);
    if (p.value != expected) fail_msg("%s: %g", text, p.value);
    if (!(p.size >= fabs(expected) && p.size < 20)) fail_msg("%s: size %g", text, p.size);
  }
}

/* The size of an expression bounds its error in a float kernel: when each argument moves by step times its size, the
 * result moves by at most 4 * step * size. */
TEST(sizes_bound_errors) {
  static const char *const texts[] = {
      "a*b+x",         "a/b-x/acc",         "exp(a*b)", "log(abs(a)+1)",    "a>b?a:b",
      "relu(a*b+x)",   "a*b>x?1:-1",        "floor(a)", "tanh(a*b)*degree", "max(a,b)*min(x,acc)",
      "sqrt(a*a+b*b)", "a<b?a*a:b/(1+x*x)", "(a>b)*x",  "a>b&&x>0?acc:a",
  };
  const double step = 0x1p-18;
  wlmi_random random = wlmi_random_for(5, 0, 0);
  for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
    for (int i = 0; i < 2000; i++) {
      double values[WLMI_OPERANDS], moved[WLMI_OPERANDS], sizes[WLMI_OPERANDS];
      for (int k = 0; k < WLMI_OPERANDS; k++) {
        values[k] = (double)(wlmi_random_below(&random, 33) - 16) / 8; /* multiples of 1/8, so that ties are frequent */
        if (k != WLMI_OPERAND_X && values[k] == 0) values[k] = 1;
        if (k == WLMI_OPERAND_ACC && i % 2) values[k] = 1 + step * (double)wlmi_random_below(&random, 3);
        sizes[k] = fabs(values[k]) * (double)(1 + wlmi_random_below(&random, 3));
        moved[k] = values[k] + step * sizes[k] * (double)(wlmi_random_below(&random, 201) - 100) / 100;
      }
      const point here = evaluate_at(texts[t], values, sizes, step), there = evaluate_at(texts[t], moved, sizes, step);
      if (!(fabs(there.value - here.value) <= 4 * step * here.size + 1e-12))
        fail_msg("%s: %g becomes %g, beyond a size of %g", texts[t], here.value, there.value, here.size);
      if (isfinite(here.value) && !(here.size >= 0 && here.size < 1e7)) fail_msg("%s: size %g", texts[t], here.size);
    }
}
