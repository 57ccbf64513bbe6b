/* Writes a problem's user-defined operator or message, and its activation, as C text for the operator block. */
#pragma once

#include <lua.h>

#include "core/problem/message.h"
#include "core/problem/operator.h"
#include "core/problem/spec.h"

enum { WLMI_SOURCE_PARTS = WLMI_PARTS + 1 }; /* the parts of an operator and the activation */

/* The C text of the parts. It is made before Lua is called, because Lua leaves a C function by longjmp when memory runs
 * out. */
typedef struct wlmi_custom_source {
  wlmi_text parts[WLMI_SOURCE_PARTS]; /* empty if absent */
  int is_custom, any_order, message_uses_a, message_uses_b;
  wlmi_message message; /* no results: the problem is none */
  wlmi_text sums[WLMI_MAX_SUMS], results[WLM_MAX_RESULTS];
  unsigned char calls[WLMI_FUNCTIONS]; /* by index of wlmi_functions */
} wlmi_custom_source;

/* The source must not be moved afterwards. */
wlm_status wlmi_custom_source_make(const wlmi_spec *spec, wlmi_custom_source *source);
void wlmi_custom_source_release(wlmi_custom_source *source);

/* Sets in the table on top of the stack: custom (nil, or a table of the parts that are there, with uses_a, uses_b
 * and any_order), walk (nil, or, of a message, {operands, sums, results}), activation (nil or text), functions (a list
 * of {name, arity} or {own = name}). An operand is {name, place, width, source, at}, a sum {name, text, uses}, a result
 * {kind, text, uses}; `at` and `uses` count operands from 0, then sums. */
void wlmi_custom_source_push(lua_State *lua, const wlmi_custom_source *source);
