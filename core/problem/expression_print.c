/* Prints expressions in normal form: without spaces, needless parentheses, the f of numbers and short names of
 * functions, so an operator has one text however it was written. For C the same walk writes numbers in the
 * accumulator's type and converts truth values to it where they are used in arithmetic. So there is no integer
 * arithmetic (1/2 is 0.5), and float expressions are not widened to double. */
#include "core/problem/expression.h"

#include <math.h>
#include <string.h>

/* "fmaxf": what a function is called in C. */
static void print_name(const wlmi_function *function, wlmi_spelling spelling, wlmi_text *text) {
  const char *before = function->own && spelling != WLMI_SPELL_NORMAL ? "wlm_" : "";
  wlmi_text_printf(text, "%s%s%s", before, function->means, !function->own && spelling == WLMI_SPELL_FLOAT ? "f" : "");
}

static void print_number(const wlmi_node *node, wlmi_spelling spelling, wlmi_text *text) {
  if (spelling == WLMI_SPELL_NORMAL)
    wlmi_text_puts(text, node->digits);
  else if (isinf(node->value))
    wlmi_text_puts(text, "WLM_INF");
  else
    wlmi_text_printf(text, "%s%s%s", node->digits, strpbrk(node->digits, ".eE") ? "" : ".",
                     spelling == WLMI_SPELL_FLOAT ? "f" : "");
}

/* The last operand of a node ends right before it. */
void wlmi_expression_operands(const wlmi_expression *e, int at, int operands[3]) {
  int end = at - 1;
  for (int i = e->nodes[at].arity; i-- > 0; end -= e->nodes[end].size) operands[i] = end;
}

static void print(const wlmi_expression *e, int at, int least, int as_truth, wlmi_spelling spelling, wlmi_text *text);

static void print_operation(const wlmi_expression *e, int at, wlmi_spelling spelling, wlmi_text *text) {
  const wlmi_operation_info *o = &wlmi_operations[e->nodes[at].which];
  int operands[3] = {0};
  wlmi_expression_operands(e, at, operands);
  if (o->arity == 1) {
    if (o->text[0] == '-' && text->size && text->data[text->size - 1] == '-') wlmi_text_puts(text, " ");
    wlmi_text_puts(text, o->text);
    print(e, operands[0], WLMI_UNARY, o->of_truths, spelling, text);
    return;
  }
  print(e, operands[0], o->precedence + (o->arity == 3), o->of_truths, spelling, text);
  wlmi_text_puts(text, o->text);
  if (o->arity == 3) {
    print(e, operands[1], WLMI_TERNARY, 0, spelling, text);
    wlmi_text_puts(text, ":");
    print(e, operands[2], WLMI_TERNARY, 0, spelling, text);
  } else {
    print(e, operands[1], o->precedence + 1, o->of_truths, spelling, text);
  }
}

/* `least` is the precedence that needs no parentheses here; `as_truth` = a truth value need not be converted to a
 * number. */
static void print(const wlmi_expression *e, int at, int least, int as_truth, wlmi_spelling spelling, wlmi_text *text) {
  const wlmi_node *node = &e->nodes[at];
  int operands[3] = {0};
  switch (node->kind) {
    case WLMI_NODE_NUMBER: print_number(node, spelling, text); break;
    case WLMI_NODE_OPERAND:
      if (e->names) {
        wlmi_text_printf(text, "%s%s", spelling == WLMI_SPELL_NORMAL ? "" : "v_", e->names[node->which]);
        break;
      }
      if (node->which == WLMI_OPERAND_DEGREE && spelling != WLMI_SPELL_NORMAL) wlmi_text_puts(text, "(wlm_acc_t)");
      wlmi_text_puts(text, wlmi_operand_names[node->which]);
      break;
    case WLMI_NODE_FUNCTION:
      wlmi_expression_operands(e, at, operands);
      print_name(&wlmi_functions[node->which], spelling, text);
      for (int i = 0; i < node->arity; i++) {
        wlmi_text_puts(text, i ? "," : "(");
        print(e, operands[i], WLMI_TERNARY, 0, spelling, text);
      }
      wlmi_text_puts(text, ")");
      break;
    case WLMI_NODE_OPERATION: {
      int turned = wlmi_operations[node->which].is_truth && !as_truth && spelling != WLMI_SPELL_NORMAL;
      int enclosed = turned || wlmi_operations[node->which].precedence < least;
      if (enclosed) wlmi_text_puts(text, turned ? "(wlm_acc_t)(" : "(");
      print_operation(e, at, spelling, text);
      if (enclosed) wlmi_text_puts(text, ")");
    }
  }
}

void wlmi_expression_print(const wlmi_expression *expression, wlmi_spelling spelling, wlmi_text *text) {
  print(expression, expression->count - 1, WLMI_TERNARY, 0, spelling, text);
}

void wlmi_expression_print_node(const wlmi_expression *expression, int at, wlmi_text *text) {
  print(expression, at, WLMI_UNARY + 1, 0, WLMI_SPELL_NORMAL, text);
}

/* ---- properties ----------------------------------------------------------------------------------- */

static int count_of(const wlmi_expression *expression, wlmi_node_kind kind, int which) {
  int count = 0;
  for (int i = 0; i < expression->count; i++)
    count += expression->nodes[i].kind == kind && (which < 0 || expression->nodes[i].which == which);
  return count;
}

int wlmi_expression_uses(const wlmi_expression *expression, int operand) {
  return count_of(expression, WLMI_NODE_OPERAND, operand) > 0;
}

int wlmi_expression_calls(const wlmi_expression *expression, int function) {
  return count_of(expression, WLMI_NODE_FUNCTION, function) > 0;
}

int wlmi_expression_roundings(const wlmi_expression *expression) {
  return count_of(expression, WLMI_NODE_OPERATION, -1) + 4 * count_of(expression, WLMI_NODE_FUNCTION, -1);
}

double wlmi_expression_largest(const wlmi_expression *expression) {
  double largest = 0;
  for (int i = 0; i < expression->count; i++) {
    const wlmi_node *node = &expression->nodes[i];
    if (node->kind == WLMI_NODE_NUMBER && isfinite(node->value)) largest = fmax(largest, node->value);
  }
  return largest;
}
