/* A parser by precedence climbing over a tokenizer of a few lines. It writes nodes in postfix order, which serves both
 * readers: an evaluation walks them with a stack, and a printer (expression_print.c) finds the operands of a node
 * right before it, because each node knows the size of the subtree that it ends. */
#include "core/problem/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/locale.h"
#include "core/base/memory.h"

/* ---- tokens -------------------------------------------------------------------------------------- */

typedef struct parser {
  const char *part, *text;
  size_t size, at; /* at = the token in hand, which ends at `end` */
  size_t end;
  const char *const *names; /* `count` operands, of which those in `operands` may be used */
  int count;
  unsigned int operands;
  int nesting, height;
  wlmi_expression *out;
  wlm_status status; /* the first failure; then the token in hand is empty */
} parser;

static void fail(parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(parser *p, const char *format, ...) {
  char why[512];
  va_list arguments;
  if (p->status != WLM_OK) return;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  size_t shown = 0; /* a message is one line, so the text shown ends at the first line end */
  while (shown < p->size && !iscntrl((unsigned char)p->text[shown])) shown++;
  p->status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op:%s, column %zu of '%.*s': %s", p->part, p->at + 1, (int)shown,
                        p->text, why);
  p->at = p->end = p->size;
}

static int peek(const parser *p, size_t at) { return at < p->size ? (unsigned char)p->text[at] : 0; }
static int is_name(int c) { return isalnum(c) || c == '_'; }

static size_t digits_end(const parser *p, size_t at) {
  while (isdigit(peek(p, at))) at++;
  return at;
}

static size_t number_end(const parser *p, size_t at) {
  at = digits_end(p, at);
  if (peek(p, at) == '.') at = digits_end(p, at + 1);
  if (peek(p, at) == 'e' || peek(p, at) == 'E') {
    size_t exponent = at + 1;
    if (peek(p, exponent) == '+' || peek(p, exponent) == '-') exponent++;
    if (isdigit(peek(p, exponent))) at = digits_end(p, exponent);
  }
  return at;
}

static void next(parser *p) {
  if (p->status != WLM_OK) return;
  p->at = p->end;
  while (peek(p, p->at) == ' ' || peek(p, p->at) == '\t') p->at++;
  const int c = peek(p, p->at), d = peek(p, p->at + 1);
  p->end = p->at;
  if (p->at >= p->size) return;
  if (isalpha(c) || c == '_') {
    while (is_name(peek(p, p->end))) p->end++;
  } else if (isdigit(c) || (c == '.' && isdigit(d))) {
    p->end = number_end(p, p->at);
    if (tolower(peek(p, p->end)) == 'f') p->end++;
    if (is_name(peek(p, p->end)) || peek(p, p->end) == '.') fail(p, "this is no number; write 2, 0.5 or 1e-3");
  } else if ((c == '+' || c == '-') && d == c) {
    fail(p, "'%c%c' is not allowed: an expression changes nothing; for two signs put a space between them", c, c);
  } else if (c == '=' && d != '=') {
    fail(p, "'=' is not allowed: an expression assigns nothing; equality is ==");
  } else if (((c == '<' || c == '>' || c == '=' || c == '!') && d == '=') || ((c == '&' || c == '|') && d == c)) {
    p->end = p->at + 2;
  } else if (strchr("+-*/()<>!?:,", c)) {
    p->end = p->at + 1;
  } else if (isprint(c)) {
    fail(p, "'%c' is not allowed; there are numbers, operands, functions and + - * / ( ) ?: < <= > >= == != && || !",
         c);
  } else {
    fail(p, "a character with the code %d is not allowed", c);
  }
}

static int is(const parser *p, const char *token) {
  return p->end - p->at == strlen(token) && !memcmp(p->text + p->at, token, p->end - p->at);
}

static int accept(parser *p, const char *token) {
  if (p->at == p->end || !is(p, token)) return 0;
  next(p);
  return 1;
}

static void expect(parser *p, const char *token, const char *why) {
  if (accept(p, token)) return;
  fail(p, "'%s' is expected %s", token, why);
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static wlmi_node *add(parser *p, wlmi_node_kind kind, int which, int arity) {
  static wlmi_node nowhere;
  wlmi_expression *e = p->out;
  if (p->status != WLM_OK) return &nowhere;
  if (e->count == e->capacity) {
    int capacity = e->capacity ? 2 * e->capacity : 16;
    wlmi_node *grown = wlmi_realloc(e->nodes, (size_t)capacity * sizeof *grown);
    if (!grown) {
      p->status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "op:%s", p->part);
      p->at = p->end = p->size;
      return &nowhere;
    }
    e->nodes = grown;
    e->capacity = capacity;
  }
  int size = 1;
  for (int i = 0; i < arity; i++) size += e->nodes[e->count - size].size;
  e->nodes[e->count] = (wlmi_node){.kind = kind, .which = which, .arity = arity, .size = size};
  p->height += 1 - arity;
  if (p->height > e->depth) e->depth = p->height;
  if (p->height > WLMI_EXPRESSION_DEPTH) fail(p, "this is nested too deeply");
  return p->status == WLM_OK ? &e->nodes[e->count++] : &nowhere;
}

static void parse_ternary(parser *p);

/* Keeps the fewest digits that give the same double, so that 0.5, .5 and 5e-1 get one spelling. */
static void parse_number(parser *p) {
  char text[64], digits[WLMI_NUMBER_DIGITS];
  const size_t size = p->end - p->at;
  if (size >= sizeof text) {
    fail(p, "a number has at most %d characters", (int)sizeof text - 1);
    return;
  }
  memcpy(text, p->text + p->at, size);
  text[size] = 0;
  const wlmi_c_locale locale = wlmi_c_locale_enter();
  const double value = strtod(text, NULL);
  int precision = 6; /* 1000 and not 1e+03 */
  do snprintf(digits, sizeof digits, "%.*g", precision, value);
  while (strtod(digits, NULL) != value && ++precision <= 17);
  wlmi_c_locale_leave(locale);
  if (isinf(value)) fail(p, "%s is beyond the range of double; infinity is written inf", text);
  wlmi_node *node = add(p, WLMI_NODE_NUMBER, 0, 0);
  node->value = value;
  memcpy(node->digits, digits, sizeof digits);
  next(p);
}

/* The table has rows for "max" and "fmax"; "fmaxf" is found as "fmax" with an f. */
static int find_function(const parser *p) {
  const char *name = p->text + p->at;
  size_t size = p->end - p->at;
  for (int strip = 0; strip < 2 && (!strip || (size > 1 && name[size - 1] == 'f')); strip++)
    for (int i = 0; i < WLMI_FUNCTIONS; i++) {
      const wlmi_function *f = &wlmi_functions[i];
      if (strlen(f->name) == size - (size_t)strip && !strncmp(f->name, name, strlen(f->name)) &&
          (!strip || (f->name == f->means && !f->own)))
        return i;
    }
  return -1;
}

static void fail_unknown(parser *p) {
  wlmi_text known = {0};
  for (int i = 0; i < p->count; i++)
    if (p->operands & 1u << i) wlmi_text_printf(&known, "%s%s", known.size ? ", " : "", p->names[i]);
  fail(p,
       "'%.*s' is not known here; the operands of %s are: %s; functions are those of C's math.h (fmax, exp, tanh "
       "...), relu, leaky_relu and sigmoid",
       (int)(p->end - p->at > 40 ? 40 : p->end - p->at), p->text + p->at, p->part, known.data ? known.data : "none");
  wlmi_text_release(&known);
}

static void parse_call(parser *p, int index) {
  const wlmi_function *f = &wlmi_functions[index];
  const size_t name = p->at;
  int given = 0;
  next(p);
  if (!is(p, "(")) {
    fail(p, "'(' is expected: %s is a function of %d", f->name, f->arity);
    return;
  }
  next(p);
  if (!is(p, ")")) do {
      parse_ternary(p);
      given++;
    } while (accept(p, ","));
  if (p->status == WLM_OK && is(p, ")") && given != f->arity) {
    p->at = name;
    fail(p, "%s takes %d argument%s, not %d", f->name, f->arity, f->arity == 1 ? "" : "s", given);
  }
  expect(p, ")", "after the arguments");
  if (p->status == WLM_OK) add(p, WLMI_NODE_FUNCTION, index, f->arity);
}

static void parse_name(parser *p) {
  if (is(p, "inf") || is(p, "INFINITY")) {
    wlmi_node *node = add(p, WLMI_NODE_NUMBER, 0, 0);
    node->value = (double)INFINITY;
    memcpy(node->digits, "inf", 4);
    next(p);
    return;
  }
  for (int i = 0; i < p->count; i++)
    if (p->operands & 1u << i && is(p, p->names[i])) {
      add(p, WLMI_NODE_OPERAND, i, 0);
      next(p);
      return;
    }
  int function = find_function(p);
  if (function < 0)
    fail_unknown(p);
  else
    parse_call(p, function);
}

static void parse_unary(parser *p) {
  const int c = p->at < p->end ? (unsigned char)p->text[p->at] : 0;
  if (++p->nesting > 4 * WLMI_EXPRESSION_DEPTH) fail(p, "this is nested too deeply");
  if (c == '-' || c == '+' || is(p, "!")) {
    next(p);
    parse_unary(p);
    if (c != '+') add(p, WLMI_NODE_OPERATION, c == '-' ? WLMI_NEGATE : WLMI_NOT, 1);
  } else if (c == '(') {
    next(p);
    parse_ternary(p);
    expect(p, ")", "after what is in parentheses");
  } else if (isalpha(c) || c == '_') {
    parse_name(p);
  } else if (isdigit(c) || c == '.') {
    parse_number(p);
  } else {
    fail(p, "a number, an operand, a function or '(' is expected");
  }
  p->nesting--;
}

static int binary_in_hand(const parser *p) {
  for (int i = 0; i < WLMI_OPERATIONS; i++)
    if (wlmi_operations[i].arity == 2 && is(p, wlmi_operations[i].text)) return i;
  return -1;
}

static void parse_binary(parser *p, int least) {
  parse_unary(p);
  for (int found; (found = binary_in_hand(p)) >= 0 && wlmi_operations[found].precedence >= least;) {
    next(p);
    parse_binary(p, wlmi_operations[found].precedence + 1);
    add(p, WLMI_NODE_OPERATION, found, 2);
  }
}

static void parse_ternary(parser *p) {
  parse_binary(p, WLMI_TERNARY + 1);
  if (!accept(p, "?")) return;
  if (++p->nesting > 4 * WLMI_EXPRESSION_DEPTH) fail(p, "this is nested too deeply");
  parse_ternary(p);
  expect(p, ":", "after '?' and its value");
  parse_ternary(p);
  add(p, WLMI_NODE_OPERATION, WLMI_CHOOSE, 3);
  p->nesting--;
}

/* Some numbers are longer in normal form, which must be readable again. */
static wlm_status check_normal_form(const char *part, const wlmi_expression *expression) {
  wlmi_text text = {0};
  wlm_status status = WLM_OK;
  wlmi_expression_print(expression, WLMI_SPELL_NORMAL, &text);
  if (text.failed)
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "op:%s", part);
  else if (text.size > WLMI_EXPRESSION_TEXT)
    status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op:%s has %zu characters in normal form, at most %d are allowed",
                       part, text.size, WLMI_EXPRESSION_TEXT);
  wlmi_text_release(&text);
  return status;
}

static wlm_status parse(parser *p, size_t size) {
  if (size > WLMI_EXPRESSION_TEXT)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op:%s has %zu characters, at most %d are allowed", p->part, size,
                     WLMI_EXPRESSION_TEXT);
  p->size = size;
  next(p);
  parse_ternary(p);
  if (p->at < p->end) fail(p, "the expression should end here");
  if (p->status == WLM_OK) p->status = check_normal_form(p->part, p->out);
  if (p->status != WLM_OK) wlmi_expression_release(p->out);
  return p->status;
}

wlm_status wlmi_expression_parse(const char *part, const char *text, size_t size, unsigned int operands,
                                 wlmi_expression *expression) {
  parser p = {.part = part,
              .text = text,
              .names = wlmi_operand_names,
              .count = WLMI_OPERANDS,
              .operands = operands,
              .out = expression};
  *expression = (wlmi_expression){0};
  return parse(&p, size);
}

wlm_status wlmi_expression_parse_named(const char *part, const char *text, size_t size, const char *const *names,
                                       int count, wlmi_expression *expression) {
  parser p = {.part = part, .text = text, .names = names, .count = count, .operands = ~0u, .out = expression};
  *expression = (wlmi_expression){.names = names};
  return parse(&p, size);
}

void wlmi_expression_release(wlmi_expression *expression) {
  wlmi_free(expression->nodes);
  *expression = (wlmi_expression){0};
}
