/* What an expression may consist of: functions, operands and operations. */
#include <math.h>

#include "core/problem/expression.h"

static double relu(double x) { return x < 0 ? 0 : x; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double leaky_relu(double x, double slope) { return x < 0 ? slope * x : x; }
static double expscale(double x, double base, double scale) { return scale * exp(x - base); }
/* glibc 2.35 has another version of hypot; a wheel that calls it would need 2.35. */
static double hypotenuse(double x, double y) { return (double)hypotl(x, y); }

#define FUNCTION(name, arity, kind, ...) \
  { #name, #name, arity, 0, {__VA_ARGS__ }, .kind = name }
#define ONE(name, by)    FUNCTION(name, 1, one, by)
#define TWO(name, ...)   FUNCTION(name, 2, two, __VA_ARGS__)
#define THREE(name, ...) FUNCTION(name, 3, three, __VA_ARGS__)
const wlmi_function wlmi_functions[] = {
    ONE(fabs, "($0<0?-1:$0>0?1:0)"),
    TWO(fmax, "($0<$1?0:1)", "($0<$1?1:0)"),
    TWO(fmin, "($1<$0?0:1)", "($1<$0?1:0)"),
    {"abs", "fabs", 1, 0, {"($0<0?-1:$0>0?1:0)"}, .one = fabs},
    {"max", "fmax", 2, 0, {"($0<$1?0:1)", "($0<$1?1:0)"}, .two = fmax},
    {"min", "fmin", 2, 0, {"($1<$0?0:1)", "($1<$0?1:0)"}, .two = fmin},
    {"relu", "relu", 1, 1, {"($0>0?1:0)"}, .one = relu},
    {"leaky_relu", "leaky_relu", 2, 1, {"($0>0?1:$1)", "($0<0?$0:0)"}, .two = leaky_relu},
    {"sigmoid", "sigmoid", 1, 1, {"$f*(1-$f)"}, .one = sigmoid},
    ONE(exp, "$f"),
    ONE(exp2, "$f*0.693147180559945309"),
    ONE(expm1, "exp($0)"),
    ONE(log, "1/$0"),
    ONE(log2, "1.44269504088896341/$0"),
    ONE(log10, "0.434294481903251828/$0"),
    ONE(log1p, "1/(1+$0)"),
    ONE(sqrt, "0.5/$f"),
    ONE(cbrt, "1/(3*$f*$f)"),
    TWO(pow, "$1==0?0:$1*pow($0,$1-1)", "$0==0&&$1>=0?0:$f*log($0)"), /* as PyTorch's at a base of 0 */
    {"hypot", "hypot", 2, 0, {"$0/$f", "$1/$f"}, .two = hypotenuse},
    ONE(sin, "cos($0)"),
    ONE(cos, "-sin($0)"),
    ONE(tan, "(1+$f*$f)"),
    ONE(asin, "1/sqrt(1-$0*$0)"),
    ONE(acos, "-1/sqrt(1-$0*$0)"),
    ONE(atan, "1/(1+$0*$0)"),
    TWO(atan2, "$1/($0*$0+$1*$1)", "-$0/($0*$0+$1*$1)"),
    ONE(sinh, "cosh($0)"),
    ONE(cosh, "sinh($0)"),
    ONE(tanh, "(1-$f*$f)"),
    ONE(erf, "1.12837916709551257*exp(-$0*$0)"),
    ONE(erfc, "-1.12837916709551257*exp(-$0*$0)"),
    ONE(floor, "0"),
    ONE(ceil, "0"),
    ONE(trunc, "0"),
    ONE(round, "0"),
    TWO(fmod, "1", "-trunc($0/$1)"),
    TWO(copysign, "copysign(1,$0)*copysign(1,$1)", "0"),
    THREE(fma, "$1", "$0", "1"),
    {"expscale", "expscale", 3, 1, {"$f", "-$f", "expscale($0,$1,1)"}, .three = expscale},
};
_Static_assert(sizeof wlmi_functions / sizeof *wlmi_functions == WLMI_FUNCTIONS, "one row a function");

const char *const wlmi_operand_names[WLMI_OPERANDS] = {"a", "b", "acc", "x", "degree"};

const wlmi_operation_info wlmi_operations[] = {
    [WLMI_NEGATE] = {"-", WLMI_UNARY, 1, 0, 0},
    [WLMI_NOT] = {"!", WLMI_UNARY, 1, 1, 1},
    [WLMI_MULTIPLY] = {"*", 7, 2, 0, 0},
    [WLMI_DIVIDE] = {"/", 7, 2, 0, 0},
    [WLMI_PLUS] = {"+", 6, 2, 0, 0},
    [WLMI_MINUS] = {"-", 6, 2, 0, 0},
    [WLMI_LESS] = {"<", 5, 2, 1, 0},
    [WLMI_LESS_EQUAL] = {"<=", 5, 2, 1, 0},
    [WLMI_GREATER] = {">", 5, 2, 1, 0},
    [WLMI_GREATER_EQUAL] = {">=", 5, 2, 1, 0},
    [WLMI_EQUAL] = {"==", 4, 2, 1, 0},
    [WLMI_NOT_EQUAL] = {"!=", 4, 2, 1, 0},
    [WLMI_AND] = {"&&", 3, 2, 1, 1},
    [WLMI_OR] = {"||", 2, 2, 1, 1},
    [WLMI_CHOOSE] = {"?", WLMI_TERNARY, 3, 0, 1},
};
_Static_assert(sizeof wlmi_operations / sizeof *wlmi_operations == WLMI_OPERATIONS, "one row an operation");
