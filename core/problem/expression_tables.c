/* What an expression may consist of: functions, operands and operations. */
#include <math.h>

#include "core/problem/expression.h"

static double relu(double x) { return x < 0 ? 0 : x; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double leaky_relu(double x, double slope) { return x < 0 ? slope * x : x; }
/* glibc 2.35 has another version of hypot; a wheel that calls it would need 2.35. */
static double hypotenuse(double x, double y) { return (double)hypotl(x, y); }

#define ONE(name) \
  { #name, #name, 1, 0, .one = name }
#define TWO(name) \
  { #name, #name, 2, 0, .two = name }
#define THREE(name) \
  { #name, #name, 3, 0, .three = name }
const wlmi_function wlmi_functions[] = {
    ONE(fabs),
    TWO(fmax),
    TWO(fmin),
    {"abs", "fabs", 1, 0, .one = fabs},
    {"max", "fmax", 2, 0, .two = fmax},
    {"min", "fmin", 2, 0, .two = fmin},
    {"relu", "relu", 1, 1, .one = relu},
    {"leaky_relu", "leaky_relu", 2, 1, .two = leaky_relu},
    {"sigmoid", "sigmoid", 1, 1, .one = sigmoid},
    ONE(exp),
    ONE(exp2),
    ONE(expm1),
    ONE(log),
    ONE(log2),
    ONE(log10),
    ONE(log1p),
    ONE(sqrt),
    ONE(cbrt),
    TWO(pow),
    {"hypot", "hypot", 2, 0, .two = hypotenuse},
    ONE(sin),
    ONE(cos),
    ONE(tan),
    ONE(asin),
    ONE(acos),
    ONE(atan),
    TWO(atan2),
    ONE(sinh),
    ONE(cosh),
    ONE(tanh),
    ONE(erf),
    ONE(erfc),
    ONE(floor),
    ONE(ceil),
    ONE(trunc),
    ONE(round),
    TWO(fmod),
    TWO(copysign),
    THREE(fma),
};
_Static_assert(sizeof wlmi_functions / sizeof *wlmi_functions == WLM_FUNCTIONS, "one row a function");

const char *const wlmi_operand_names[WLM_OPERANDS] = {"a", "b", "acc", "x", "degree"};

const wlmi_operation_info wlmi_operations[] = {
    [WLM_NEGATE] = {"-", WLM_UNARY, 1, 0, 0},
    [WLM_NOT] = {"!", WLM_UNARY, 1, 1, 1},
    [WLM_MULTIPLY] = {"*", 7, 2, 0, 0},
    [WLM_DIVIDE] = {"/", 7, 2, 0, 0},
    [WLM_PLUS] = {"+", 6, 2, 0, 0},
    [WLM_MINUS] = {"-", 6, 2, 0, 0},
    [WLM_LESS] = {"<", 5, 2, 1, 0},
    [WLM_LESS_EQUAL] = {"<=", 5, 2, 1, 0},
    [WLM_GREATER] = {">", 5, 2, 1, 0},
    [WLM_GREATER_EQUAL] = {">=", 5, 2, 1, 0},
    [WLM_EQUAL] = {"==", 4, 2, 1, 0},
    [WLM_NOT_EQUAL] = {"!=", 4, 2, 1, 0},
    [WLM_AND] = {"&&", 3, 2, 1, 1},
    [WLM_OR] = {"||", 2, 2, 1, 1},
    [WLM_CHOOSE] = {"?", WLM_TERNARY, 3, 0, 1},
};
_Static_assert(sizeof wlmi_operations / sizeof *wlmi_operations == WLM_OPERATIONS, "one row an operation");
