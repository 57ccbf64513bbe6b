#include "core/problem/operator.h"

#include <string.h>

#include "core/problem/slice.h"

#define BIT(operand) (1u << WLMI_OPERAND_##operand)

const char *const wlmi_part_names[WLMI_PARTS] = {"message", "init", "reduce", "combine", "finish"};
static const unsigned int part_operands[WLMI_PARTS] = {BIT(A) | BIT(B), 0, BIT(ACC) | BIT(X), BIT(ACC) | BIT(X),
                                                       BIT(ACC) | BIT(DEGREE)};

/* Fails because `name` is given twice. */
static wlm_status fail_twice(wlmi_slice name) {
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: %.*s is given twice; give it once", (int)name.size, name.text);
}

/* name=expression; combine=reduce and order=any are declarations instead. */
static wlm_status parse_part(wlmi_slice s, wlmi_operator *op) {
  const char *equals = memchr(s.text, '=', s.size);
  const wlmi_slice name = wlmi_slice_trim((wlmi_slice){s.text, equals ? (size_t)(equals - s.text) : s.size});
  const int part = equals ? wlmi_slice_index(name, wlmi_part_names, WLMI_PARTS) : -1;
  const wlmi_slice value = {equals ? equals + 1 : s.text, equals ? s.size - (size_t)(equals + 1 - s.text) : 0};
  if (equals && wlmi_slice_is(name, "order")) {
    if (!wlmi_slice_is(wlmi_slice_trim(value), "any"))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: order can only be any; leave it out for the order of the row");
    return op->any_order++ ? fail_twice(name) : WLM_OK;
  }
  if (part < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "op: '%.*s' is no part of an operator; parts are message, init, reduce, combine and finish, "
                     "each as NAME=EXPRESSION, and order=any, separated by ';'",
                     (int)(name.size > 60 ? 60 : name.size), name.text);
  if (op->parts[part].count || (part == WLMI_PART_COMBINE && op->combine_is_reduce)) return fail_twice(name);
  if (part == WLMI_PART_COMBINE && wlmi_slice_is(wlmi_slice_trim(value), "reduce")) {
    op->combine_is_reduce = 1;
    return WLM_OK;
  }
  return wlmi_expression_parse(wlmi_part_names[part], value.text, value.size, part_operands[part], &op->parts[part]);
}

static wlm_status parse_parts(const char *text, wlmi_operator *op) {
  for (const char *at = text; *at;) {
    const wlmi_slice s = {at, strcspn(at, ";")};
    at += s.size + (at[s.size] == ';');
    if (!wlmi_slice_trim(s).size && !*at) break; /* a ';' at the end */
    WLM_CHECK(parse_part(s, op));
  }
  for (int part = WLMI_PART_INIT; part <= WLMI_PART_REDUCE; part++)
    if (!op->parts[part].count)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "op: %s is missing; the least operator is 'init=0;reduce=acc+x'",
                       wlmi_part_names[part]);
  return WLM_OK;
}

wlm_status wlmi_operator_parse(const char *text, wlmi_operator *op) {
  *op = (wlmi_operator){0};
  wlm_status status = parse_parts(text, op);
  if (status != WLM_OK) wlmi_operator_release(op);
  return status;
}

wlm_status wlmi_operator_parse_part(wlmi_part part, const char *text, wlmi_operator *op) {
  return wlmi_expression_parse(wlmi_part_names[part], text, strlen(text), part_operands[part], &op->parts[part]);
}

void wlmi_operator_release(wlmi_operator *op) {
  for (int i = 0; i < WLMI_PARTS; i++) wlmi_expression_release(&op->parts[i]);
  *op = (wlmi_operator){0};
}

const wlmi_expression *wlmi_operator_part(const wlmi_operator *op, wlmi_part part) {
  const wlmi_expression *e = &op->parts[part == WLMI_PART_COMBINE && op->combine_is_reduce ? WLMI_PART_REDUCE : part];
  return e->count ? e : NULL;
}

void wlmi_operator_print(const wlmi_operator *op, wlmi_text *text) {
  const char *between = "";
  for (int i = 0; i < WLMI_PARTS; i++) {
    const wlmi_expression *e = wlmi_operator_part(op, (wlmi_part)i);
    if (!e) continue;
    wlmi_text_printf(text, "%s%s=", between, wlmi_part_names[i]);
    between = ";";
    if (i == WLMI_PART_COMBINE && op->combine_is_reduce)
      wlmi_text_puts(text, "reduce");
    else
      wlmi_expression_print(e, WLMI_SPELL_NORMAL, text);
  }
  if (op->any_order) wlmi_text_puts(text, ";order=any");
}

wlm_status wlmi_activation_parse(const char *text, wlmi_expression *expression) {
  char call[64];
  const wlmi_slice name = wlmi_slice_trim((wlmi_slice){text, strlen(text)});
  for (int i = 0; i < WLMI_FUNCTIONS; i++)
    if (wlmi_functions[i].arity == 1 && wlmi_slice_is(name, wlmi_functions[i].name)) {
      int size = snprintf(call, sizeof call, "%s(x)", wlmi_functions[i].name);
      return wlmi_expression_parse("activation", call, (size_t)size, BIT(X), expression);
    }
  return wlmi_expression_parse("activation", text, strlen(text), BIT(X), expression);
}
