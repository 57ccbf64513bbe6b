/* Expressions in C syntax over named operands; user-defined operators and activations consist of them.
 *
 * Allowed are numbers and inf, the operands of the part, + - * / and parentheses, comparisons, && || !, ?: and the
 * functions of wlmi_functions. Everything else is refused. So an expression that is inlined into a kernel names nothing
 * but its operands, has no side effects and always compiles. */
#pragma once

#include "core/base/text.h"

typedef enum wlmi_operand {
  WLMI_OPERAND_A,
  WLMI_OPERAND_B,
  WLMI_OPERAND_ACC,
  WLMI_OPERAND_X,
  WLMI_OPERAND_DEGREE,
  WLMI_OPERANDS
} wlmi_operand;

typedef enum wlmi_arithmetic {
  WLMI_NEGATE,
  WLMI_NOT,
  WLMI_MULTIPLY,
  WLMI_DIVIDE,
  WLMI_PLUS,
  WLMI_MINUS,
  WLMI_LESS,
  WLMI_LESS_EQUAL,
  WLMI_GREATER,
  WLMI_GREATER_EQUAL,
  WLMI_EQUAL,
  WLMI_NOT_EQUAL,
  WLMI_AND,
  WLMI_OR,
  WLMI_CHOOSE /* ?: */
} wlmi_arithmetic;
enum { WLMI_OPERATIONS = WLMI_CHOOSE + 1 };

enum { WLMI_TERNARY = 1, WLMI_UNARY = 8 };
typedef struct wlmi_operation_info {
  const char *text;
  int precedence; /* WLMI_TERNARY to WLMI_UNARY */
  int arity;
  int is_truth, of_truths; /* its result; its operands, of ?: the first */
} wlmi_operation_info;
extern const wlmi_operation_info wlmi_operations[]; /* by wlmi_arithmetic */
extern const char *const wlmi_operand_names[WLMI_OPERANDS];

/* The functions of C's <math.h> that every device has, and ours. Written with or without the f of the float form: the
 * one of the accumulator's type is called. */
typedef struct wlmi_function {
  const char *name;  /* as it is written */
  const char *means; /* the name of which it is a short form; itself for most */
  int arity;
  int own; /* not in <math.h>: the operator block defines it */
  /* The derivatives by its arguments. $0, $1 and $2 stand for these, $f for the function's value. Those of fmax and
   * fmin go by the branch that they take. */
  const char *by[3];
  double (*one)(double);
  double (*two)(double, double);
  double (*three)(double, double, double);
} wlmi_function;
enum { WLMI_FUNCTIONS = 40 };
extern const wlmi_function wlmi_functions[];

typedef enum wlmi_node_kind {
  WLMI_NODE_NUMBER,
  WLMI_NODE_OPERAND,
  WLMI_NODE_OPERATION,
  WLMI_NODE_FUNCTION
} wlmi_node_kind;
/* Characters of a number; of an expression, as given and in normal form; the depth of its evaluation; and its names. */
enum { WLMI_NUMBER_DIGITS = 24, WLMI_EXPRESSION_TEXT = 2048, WLMI_EXPRESSION_DEPTH = 32, WLMI_EXPRESSION_NAMES = 32 };

typedef struct wlmi_node {
  wlmi_node_kind kind;
  int which; /* wlmi_operand, wlmi_arithmetic or an index of wlmi_functions */
  int arity;
  int size; /* nodes of the subtree that ends here */
  double value;
  char digits[WLMI_NUMBER_DIGITS];
} wlmi_node;

/* Postfix: the operands of an operation stand before it. */
typedef struct wlmi_expression {
  wlmi_node *nodes;
  int count, capacity;      /* count 0 = there is none */
  int depth;                /* stack depth that an evaluation needs, at most WLMI_EXPRESSION_DEPTH */
  const char *const *names; /* of its operands, where they are not those of an operator; not owned */
} wlmi_expression;

/* `part` names the expression in messages ("message"), `operands` is a union of 1 << wlmi_operand. Reads `size`
 * characters; they need no NUL behind them. WLM_ERR_INVALID_ARGUMENT with the column and what to write instead. */
wlm_status wlmi_expression_parse(const char *part, const char *text, size_t size, unsigned int operands,
                                 wlmi_expression *expression);
/* The same over operands with names of their own, which must outlive the expression; an operand is its index. In C they
 * are written as v_NAME. At most WLMI_EXPRESSION_NAMES. */
wlm_status wlmi_expression_parse_named(const char *part, const char *text, size_t size, const char *const *names,
                                       int count, wlmi_expression *expression);
void wlmi_expression_release(wlmi_expression *expression); /* also of a zeroed one */

typedef enum wlmi_spelling {
  WLMI_SPELL_NORMAL, /* without spaces and needless parentheses; parsing it gives the same text again */
  WLMI_SPELL_FLOAT,  /* C over float operands */
  WLMI_SPELL_DOUBLE  /* C over double operands */
} wlmi_spelling;
void wlmi_expression_print(const wlmi_expression *expression, wlmi_spelling spelling, wlmi_text *text);
/* The subtree that ends at node `at`, in parentheses where it is an operation. */
void wlmi_expression_print_node(const wlmi_expression *expression, int at, wlmi_text *text);
/* The operands of node `at`, as the nodes at which they end. */
void wlmi_expression_operands(const wlmi_expression *expression, int at, int operands[3]);

int wlmi_expression_uses(const wlmi_expression *expression, int operand);
int wlmi_expression_calls(const wlmi_expression *expression, int function); /* an index of wlmi_functions */
/* The largest number in it except inf; 0 if it has none. */
double wlmi_expression_largest(const wlmi_expression *expression);
/* How many roundings an evaluation makes: one for an operation, four for a function, which is exact to a few units in
 * the last place only. */
int wlmi_expression_roundings(const wlmi_expression *expression);
