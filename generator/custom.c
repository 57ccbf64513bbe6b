#include "generator/custom.h"

#include <lauxlib.h>
#include <string.h>

static void add(wlmi_custom_source *source, wlmi_text *to, const wlmi_expression *e, wlmi_spelling spelling) {
  wlmi_expression_print(e, spelling, to);
  for (int i = 0; i < WLMI_FUNCTIONS; i++) source->calls[i] |= (unsigned char)wlmi_expression_calls(e, i);
}

static wlm_status make_message(const wlmi_spec *spec, wlmi_spelling spelling, wlmi_custom_source *source) {
  const wlmi_message *message = &source->message;
  int failed = 0;
  WLM_CHECK(wlmi_message_parse(spec->custom, &source->message));
  for (int i = 0; i < message->sums; i++) {
    add(source, &source->sums[i], &message->sum[i], spelling);
    failed |= source->sums[i].failed;
  }
  for (int r = 0; r < message->results; r++) {
    add(source, &source->results[r], &message->result[r].value, spelling);
    failed |= source->results[r].failed;
  }
  return failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the text of a message") : WLM_OK;
}

wlm_status wlmi_custom_source_make(const wlmi_spec *spec, wlmi_custom_source *source) {
  const wlmi_spelling spelling = spec->problem.dense_type == WLM_F64 ? WLMI_SPELL_DOUBLE : WLMI_SPELL_FLOAT;
  const int is_message = spec->problem.operation == WLM_MESSAGE;
  wlmi_operator op = {0};
  wlmi_expression activation = {0};
  wlm_status status = WLM_OK;
  *source = (wlmi_custom_source){.is_custom = *spec->custom && !is_message};
  if (is_message) WLM_TRY(make_message(spec, spelling, source));
  if (source->is_custom) WLM_TRY(wlmi_operator_parse(spec->custom, &op));
  if (spec->problem.epilogue.activation) WLM_TRY(wlmi_activation_parse(spec->problem.epilogue.activation, &activation));
  for (int part = 0; part < WLMI_PARTS; part++) {
    const wlmi_expression *e = wlmi_operator_part(&op, (wlmi_part)part);
    if (e) add(source, &source->parts[part], e, spelling);
  }
  if (activation.count) add(source, &source->parts[WLMI_PARTS], &activation, spelling);
  source->any_order = op.any_order;
  source->message_uses_a = wlmi_expression_uses(&op.parts[WLMI_PART_MESSAGE], WLMI_OPERAND_A);
  source->message_uses_b = wlmi_expression_uses(&op.parts[WLMI_PART_MESSAGE], WLMI_OPERAND_B);
  for (int part = 0; part < WLMI_SOURCE_PARTS; part++)
    if (source->parts[part].failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the text of an operator");
done:
  wlmi_operator_release(&op);
  wlmi_expression_release(&activation);
  if (status != WLM_OK) wlmi_custom_source_release(source);
  return status;
}

void wlmi_custom_source_release(wlmi_custom_source *source) {
  for (int part = 0; part < WLMI_SOURCE_PARTS; part++) wlmi_text_release(&source->parts[part]);
  for (int i = 0; i < WLMI_MAX_SUMS; i++) wlmi_text_release(&source->sums[i]);
  for (int r = 0; r < WLM_MAX_RESULTS; r++) wlmi_text_release(&source->results[r]);
  wlmi_message_release(&source->message);
}

static void set_text(lua_State *lua, const char *key, const char *text) {
  lua_pushstring(lua, text);
  lua_setfield(lua, -2, key);
}

static void push_part(lua_State *lua, const wlmi_text *text, const char *name) {
  if (!text->size) return;
  lua_pushlstring(lua, text->data, text->size);
  lua_setfield(lua, -2, name);
}

/* 1 for the first name of a function that has two, as max and fmax. */
static int is_first(const wlmi_custom_source *source, int index) {
  for (int i = 0; i < index; i++)
    if (source->calls[i] && !strcmp(wlmi_functions[i].means, wlmi_functions[index].means)) return 0;
  return 1;
}

static void push_functions(lua_State *lua, const wlmi_custom_source *source) {
  lua_newtable(lua);
  for (int i = 0, count = 0; i < WLMI_FUNCTIONS; i++) {
    if (!source->calls[i] || !is_first(source, i)) continue;
    lua_newtable(lua);
    set_text(lua, wlmi_functions[i].own ? "own" : "name", wlmi_functions[i].means);
    lua_pushinteger(lua, wlmi_functions[i].arity);
    lua_setfield(lua, -2, "arity");
    lua_seti(lua, -2, ++count);
  }
  lua_setfield(lua, -2, "functions");
}

static void push_operands(lua_State *lua, const wlmi_message *message) {
  static const char *const sources[] = {"memory", "values", "degree", "number", "kept"};
  lua_newtable(lua);
  for (int i = 0; i < message->operands; i++) {
    const wlmi_message_operand *o = &message->operand[i];
    lua_newtable(lua);
    set_text(lua, "name", message->name[i]);
    set_text(lua, "place", wlmi_place_names[o->place]);
    set_text(lua, "width", wlmi_width_names[o->width]);
    set_text(lua, "source", sources[o->source]);
    lua_pushinteger(lua, i);
    lua_setfield(lua, -2, "at");
    lua_seti(lua, -2, i + 1);
  }
  lua_setfield(lua, -2, "operands");
}

/* Adds a table of an expression to the list on top of the stack, which gets the fields `called` = name, text and uses.
 */
static void push_value(lua_State *lua, const wlmi_message *message, const char *called, const char *name,
                       const wlmi_text *text, const wlmi_expression *value) {
  lua_newtable(lua);
  set_text(lua, called, name);
  push_part(lua, text, "text");
  lua_newtable(lua);
  for (int i = 0, count = 0; i < message->operands + message->sums; i++)
    if (wlmi_expression_uses(value, i)) {
      lua_pushinteger(lua, i);
      lua_seti(lua, -2, ++count);
    }
  lua_setfield(lua, -2, "uses");
  lua_seti(lua, -2, luaL_len(lua, -2) + 1);
}

static void push_sums(lua_State *lua, const wlmi_custom_source *source) {
  const wlmi_message *message = &source->message;
  lua_newtable(lua);
  for (int i = 0; i < message->sums; i++)
    push_value(lua, message, "name", message->name[message->operands + i], &source->sums[i], &message->sum[i]);
  lua_setfield(lua, -2, "sums");
}

static void push_results(lua_State *lua, const wlmi_custom_source *source) {
  const wlmi_message *message = &source->message;
  lua_newtable(lua);
  for (int r = 0; r < message->results; r++)
    push_value(lua, message, "kind", wlmi_result_kind_names[message->result[r].kind], &source->results[r],
               &message->result[r].value);
  lua_setfield(lua, -2, "results");
}

void wlmi_custom_source_push(lua_State *lua, const wlmi_custom_source *source) {
  if (source->message.results) {
    lua_newtable(lua);
    push_operands(lua, &source->message);
    push_sums(lua, source);
    push_results(lua, source);
    lua_setfield(lua, -2, "walk");
  }
  if (source->is_custom) {
    lua_newtable(lua);
    for (int part = 0; part < WLMI_PARTS; part++) push_part(lua, &source->parts[part], wlmi_part_names[part]);
    lua_pushboolean(lua, source->message_uses_a);
    lua_setfield(lua, -2, "uses_a");
    lua_pushboolean(lua, source->message_uses_b);
    lua_setfield(lua, -2, "uses_b");
    lua_pushboolean(lua, source->any_order);
    lua_setfield(lua, -2, "any_order");
    lua_setfield(lua, -2, "custom");
  }
  push_part(lua, &source->parts[WLMI_PARTS], "activation");
  push_functions(lua, source);
}
