/* Evaluates expressions by a stack machine over the postfix nodes. Each entry of the stack is a block of columns, so a
 * node is decoded once for many numbers.
 *
 * Each value has a size: the magnitude of the terms that it was computed from, because float errors are relative to
 * them. Sums add sizes and products multiply them, which gives sum |a b| for a sum of products and the largest message
 * for a maximum. The size of a function's result follows from how much the result changes when the arguments change by
 * `step` times their sizes. A comparison whose sides are closer than that is uncertain; the size of ?: then covers both
 * alternatives. */
#include "core/reference/evaluate.h"

#include <math.h>
#include <string.h>

void wlmi_block_fill(wlmi_column_block *block, int width, double value) {
  for (int j = 0; j < width; j++) {
    block->value[j] = value;
    block->size[j] = isinf(value) ? 0.0 : fabs(value); /* infinity is exact */
  }
}

typedef struct number {
  double value, size;
} number;

static double call(const wlmi_function *f, const double v[3]) {
  return f->arity == 1 ? f->one(v[0]) : f->arity == 2 ? f->two(v[0], v[1]) : f->three(v[0], v[1], v[2]);
}

static number apply_function(const wlmi_function *f, const number in[3], double step) {
  const double v[3] = {in[0].value, in[1].value, in[2].value};
  number out = {call(f, v), 0.0};
  for (int i = 0; i < f->arity; i++) {
    double most = 0.0;
    for (int sign = -1; sign <= 1; sign += 2) {
      double moved[3] = {v[0], v[1], v[2]};
      moved[i] += sign * step * in[i].size;
      double change = fabs(call(f, moved) - out.value) / step;
      if (change > most) most = change; /* false if change is NaN */
    }
    out.size += most;
  }
  if (isfinite(out.value) && out.size < fabs(out.value)) out.size = fabs(out.value);
  return out;
}

/* The size of a certain truth value is its value; an uncertain one has a larger size. */
static number truth(int is_true, int is_sure, double step) {
  return (number){is_true, is_sure ? (double)is_true : 2.0 / step};
}

static int is_sure(number n, double step) { return n.size == 0.0 || !(fabs(n.value) <= step * n.size); }

static number compare(int is_true, number a, number b, double step) {
  return truth(is_true, !(fabs(a.value - b.value) <= step * (a.size + b.size)), step);
}

static number choose(number condition, number yes, number no, double step) {
  number chosen = condition.value != 0.0 ? yes : no;
  if (!is_sure(condition, step)) chosen.size = fmax(yes.size, no.size) + fabs(yes.value - no.value) / step;
  return chosen;
}

static number apply_operation(wlmi_arithmetic operation, const number in[3], double step) {
  const number a = in[0], b = in[1];
  const int sure = is_sure(a, step) && is_sure(b, step);
  switch (operation) {
    case WLMI_NEGATE: return (number){-a.value, a.size};
    case WLMI_NOT: return truth(a.value == 0.0, is_sure(a, step), step);
    case WLMI_MULTIPLY: return (number){a.value * b.value, a.size * b.size};
    case WLMI_DIVIDE: return (number){a.value / b.value, a.size * b.size / (b.value * b.value)};
    case WLMI_PLUS: return (number){a.value + b.value, a.size + b.size};
    case WLMI_MINUS: return (number){a.value - b.value, a.size + b.size};
    case WLMI_LESS: return compare(a.value < b.value, a, b, step);
    case WLMI_LESS_EQUAL: return compare(a.value <= b.value, a, b, step);
    case WLMI_GREATER: return compare(a.value > b.value, a, b, step);
    case WLMI_GREATER_EQUAL: return compare(a.value >= b.value, a, b, step);
    case WLMI_EQUAL: return compare(a.value == b.value, a, b, step);
    case WLMI_NOT_EQUAL: return compare(a.value != b.value, a, b, step);
    case WLMI_AND: return truth(a.value != 0.0 && b.value != 0.0, sure, step);
    case WLMI_OR: return truth(a.value != 0.0 || b.value != 0.0, sure, step);
    case WLMI_CHOOSE: return choose(a, b, in[2], step);
  }
  return (number){NAN, 0.0};
}

static void apply(const wlmi_node *node, wlmi_column_block *in, int width, double step) {
  for (int j = 0; j < width; j++) {
    number n[3] = {{0, 0}};
    for (int i = 0; i < node->arity; i++) n[i] = (number){in[i].value[j], in[i].size[j]};
    const number out = node->kind == WLMI_NODE_FUNCTION ? apply_function(&wlmi_functions[node->which], n, step)
                                                        : apply_operation((wlmi_arithmetic)node->which, n, step);
    in[0].value[j] = out.value;
    in[0].size[j] = out.size;
  }
}

static void copy(const wlmi_column_block *from, int width, wlmi_column_block *to) {
  memcpy(to->value, from->value, (size_t)width * sizeof *to->value);
  memcpy(to->size, from->size, (size_t)width * sizeof *to->size);
}

static void repeat(wlmi_column_block *block, int width) {
  for (int j = 1; j < width; j++) block->value[j] = block->value[0], block->size[j] = block->size[0];
}

void wlmi_evaluate(const wlmi_expression *expression, const wlmi_column_block *const *operands, unsigned int common,
                   int width, double step, wlmi_column_block *result) {
  wlmi_column_block stack[WLMI_EXPRESSION_DEPTH];
  int widths[WLMI_EXPRESSION_DEPTH] = {0}, top = 0; /* 1 = all columns are the same, and only the first is there */
  for (int i = 0; i < expression->count; i++) {
    const wlmi_node *node = &expression->nodes[i];
    const int base = top - node->arity, operand = node->kind == WLMI_NODE_OPERAND;
    if (base < 0) return; /* never: the arguments of a node come before it */
    int most = operand && !(common >> node->which & 1) ? width : 1;
    for (int k = base; k < top; k++) most = widths[k] > most ? widths[k] : most;
    for (int k = base; k < top; k++)
      if (widths[k] < most) repeat(&stack[k], most);
    if (node->kind == WLMI_NODE_NUMBER)
      wlmi_block_fill(&stack[base], 1, node->value);
    else if (operand)
      copy(operands[node->which], most, &stack[base]);
    else
      apply(node, &stack[base], most, step);
    widths[base] = most;
    top = base + 1;
  }
  if (!top) return; /* never: an expression has a node */
  copy(&stack[0], widths[0], result);
  if (widths[0] < width) repeat(result, width);
}
