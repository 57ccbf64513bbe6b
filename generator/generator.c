/* The Lua host. The logic is in Lua (engine.lua, operators.lua, variants.lua); this file reads files for it, converts
 * between C structs and tables, and turns Lua errors into statuses. Every entry runs inside lua_pcall, so an
 * out-of-memory error inside Lua is a status as well. */
#include "generator/generator.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/fork.h"
#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/problem/spec_key.h"
#include "generator/custom.h"
#include "generator/files.h"

/* The candidates of one spec. */
typedef struct description {
  wlmi_candidate_list list; /* the first member, to which callers have a pointer */
  wlmi_hash key;
  atomic_int users;
  wlmi_candidate candidates[];
} description;

enum { DESCRIPTIONS = 64 }; /* lists that are kept; each takes about 50 kB */

struct wlmi_generator {
  lua_State *lua;
  pthread_mutex_t lock;
  wlmi_families families; /* set at creation */
  description *kept[DESCRIPTIONS];
  int oldest;       /* of `kept` */
  int half_changed; /* a child of fork, whose parent had a thread inside Lua */
  wlmi_fork_watch forks;
};

static void generator_in_child(void *object) {
  wlmi_generator *generator = object;
  generator->half_changed |= wlmi_fork_free_lock(&generator->lock);
}

static void *lua_memory(void *user, void *old, size_t old_size, size_t size) {
  (void)user;
  (void)old_size;
  if (size) return wlmi_realloc(old, size);
  wlmi_free(old);
  return NULL;
}

static char no_memory; /* its address is the Lua error that means: this file ran out of memory */

/* Raises the failure of a library call as a Lua error. */
static int raise_status(lua_State *lua, wlm_status status) {
  if (status != WLM_ERR_OUT_OF_MEMORY) return luaL_error(lua, "%s", wlm_error_detail());
  lua_pushlightuserdata(lua, &no_memory);
  return lua_error(lua);
}

/* ---- C structs to tables ---------------------------------------------------------------------- */

static void set_string(lua_State *lua, const char *key, const char *value) {
  lua_pushstring(lua, value);
  lua_setfield(lua, -2, key);
}

static void set_integer(lua_State *lua, const char *key, int64_t value) {
  lua_pushinteger(lua, (lua_Integer)value);
  lua_setfield(lua, -2, key);
}

static void set_boolean(lua_State *lua, const char *key, int value) {
  lua_pushboolean(lua, value);
  lua_setfield(lua, -2, key);
}

static void push_problem(lua_State *lua, const wlmi_spec *spec, const wlmi_custom_source *custom) {
  const wlm_problem *p = &spec->problem;
  const int64_t n = p->n ? p->n : p->heads; /* nothing is launched for n = 0, and templates divide by n */
  lua_newtable(lua);
  set_integer(lua, "n", n);
  set_string(lua, "message", wlmi_message_name(p->message));
  set_string(lua, "reduce", wlmi_reduce_name(p->reduce));
  set_string(lua, "empty", wlmi_empty_name(p->empty));
  set_string(lua, "dense_type", wlmi_type_name(p->dense_type));
  set_string(lua, "value_type", wlmi_type_name(spec->value_type));
  set_string(lua, "rowptr_type", wlmi_index_name(spec->rowptr_type));
  set_string(lua, "colind_type", wlmi_index_name(spec->colind_type));
  set_string(lua, "minus_base", spec->base ? " - 1" : ""); /* behind a read of rowptr or colind */
  set_string(lua, "plus_base", spec->base ? " + 1" : "");  /* behind what is written to them */
  set_boolean(lua, "has_values", spec->has_values);
  set_string(lua, "sample", wlmi_sample_name(p->sampling.sample));
  set_string(lua, "sample_norm", wlmi_sample_norm_name(p->sampling.norm));
  set_integer(lua, "sample_width", p->sampling.width);
  set_boolean(lua, "deterministic", p->policy.deterministic);
  set_integer(lua, "dense_bytes", (int64_t)wlmi_type_size(p->dense_type));
  set_integer(lua, "acc_bytes", (int64_t)wlmi_type_size(wlmi_accumulator_type(p->dense_type)));
  set_integer(lua, "colind_bytes", (int64_t)wlmi_index_size(spec->colind_type));
  set_boolean(lua, "bias", p->epilogue.bias);
  set_string(lua, "operation", wlmi_operation_name(p->operation));
  set_string(lua, "score", wlmi_score_name(p->score));
  set_boolean(lua, "dropout", p->dropout);
  set_boolean(lua, "transpose", p->transpose);
  set_boolean(lua, "batch", spec->is_batched);
  set_boolean(lua, "steps", spec->has_steps);
  /* Positions of 16 bits are stored alone; kernels compute with positions as wide as those of rowptr. */
  const wlm_index position = p->argmax_type == WLM_I16 ? spec->rowptr_type : p->argmax_type;
  set_string(lua, "arg", p->want_argmax ? wlmi_index_name(position) : "none");
  set_integer(lua, "arg_bytes", p->want_argmax ? (int64_t)wlmi_index_size(position) : 0);
  set_integer(lua, "stored_bytes", (int64_t)wlmi_index_size(p->argmax_type)); /* of a position in memory */
  set_string(lua, "place_type", wlmi_index_name(p->argmax_type));             /* of positions that a message reads */
  set_integer(lua, "place_bytes", (int64_t)wlmi_index_size(p->argmax_type));
  set_string(lua, "heads", p->heads > 1 ? "many" : "one");
  set_integer(lua, "head_width", n / p->heads);
  wlmi_custom_source_push(lua, custom);
}

int wlmi_generator_arch(int arch) { return arch > 90 ? 100 : arch >= 80 && arch < 90 ? 80 : arch; }

static void push_limits(lua_State *lua, const wlmi_limits *limits) {
  lua_newtable(lua);
  set_string(lua, "target", limits->target == WLMI_TARGET_CUDA ? "cuda" : "host");
  set_integer(lua, "arch", wlmi_generator_arch(limits->arch));
  set_integer(lua, "threads_per_block", limits->threads_per_block);
  set_integer(lua, "shared_bytes", limits->shared_bytes);
  set_integer(lua, "processors", limits->processors);
  set_boolean(lua, "any_width", limits->any_width);
}

/* ---- tables to C structs ---------------------------------------------------------------------- */

static int64_t get_integer(lua_State *lua, const char *key, int64_t fallback) {
  int is_integer = 1;
  lua_Integer value = fallback;
  if (lua_getfield(lua, -1, key) != LUA_TNIL) value = lua_tointegerx(lua, -1, &is_integer);
  lua_pop(lua, 1);
  if (!is_integer || value < 0) luaL_error(lua, "'%s' must be an integer >= 0", key);
  return value;
}

/* The index of the field's string in `choices`; 0 if the field is absent. */
static int get_choice(lua_State *lua, const char *key, const char *const *choices) {
  int found = 0;
  if (lua_getfield(lua, -1, key) != LUA_TNIL) {
    const char *value = lua_tostring(lua, -1);
    for (found = 0; choices[found] && (!value || strcmp(value, choices[found])); found++)
      ;
    if (!choices[found]) luaL_error(lua, "'%s' has the value '%s', which is not known", key, value ? value : "?");
  }
  lua_pop(lua, 1);
  return found;
}

static void get_string(lua_State *lua, const char *key, char *out, size_t capacity) {
  lua_getfield(lua, -1, key);
  const char *value = lua_tostring(lua, -1);
  if (!value || strlen(value) >= capacity) luaL_error(lua, "'%s' must be a string shorter than %d", key, (int)capacity);
  strcpy(out, value);
  lua_pop(lua, 1);
}

static int get_boolean(lua_State *lua, const char *key) {
  lua_getfield(lua, -1, key);
  const int value = lua_toboolean(lua, -1);
  lua_pop(lua, 1);
  return value;
}

static void get_bytes(lua_State *lua, const char *key, wlmi_bytes *bytes) {
  lua_getfield(lua, -1, key);
  *bytes = (wlmi_bytes){get_integer(lua, "one", 0),      get_integer(lua, "rows", 0),   get_integer(lua, "nnz", 0),
                        get_integer(lua, "n", 0),        get_integer(lua, "blocks", 0), get_integer(lua, "rows_n", 0),
                        get_integer(lua, "blocks_n", 0), get_integer(lua, "cols_n", 0)};
  lua_pop(lua, 1);
}

static void get_pass(lua_State *lua, wlmi_pass *pass) {
  static const char *const when[] = {"execute", "prepare", NULL};
  static const char *const units[] = {"one", "rows", "nnz", "rows+nnz", "blocks", "cols", NULL};
  static const char *const axis[] = {"units", "columns", NULL};
  get_string(lua, "kernel", pass->kernel, sizeof pass->kernel);
  pass->when = (wlmi_when)get_choice(lua, "when", when);
  pass->units = (wlmi_units)get_choice(lua, "units", units);
  pass->axis = (wlmi_axis)get_choice(lua, "axis", axis);
  pass->units_per_block = get_integer(lua, "units_per_block", 1);
  pass->columns_per_block = get_integer(lua, "columns_per_block", 0);
  pass->wave = get_integer(lua, "wave", 0);
  pass->processors = get_integer(lua, "processors", 0);
  pass->threads = (int)get_integer(lua, "threads", 0);
  pass->shared_bytes = get_integer(lua, "shared_bytes", 0);
  pass->dependent = get_boolean(lua, "dependent");
  pass->nonzeros_per_unit = get_integer(lua, "nonzeros_per_unit", 0);
  if (!pass->units_per_block) luaL_error(lua, "'units_per_block' must be at least 1");
}

/* Plans rely on both: there is an execute pass, and there are prepare passes if and only if there is prepared memory.
 */
static void check_passes(lua_State *lua, const wlmi_program *program) {
  static const wlmi_bytes none;
  int passes[] = {[WLMI_WHEN_EXECUTE] = 0, [WLMI_WHEN_PREPARE] = 0};
  for (int i = 0; i < program->pass_count; i++) passes[program->passes[i].when]++;
  if (!passes[WLMI_WHEN_EXECUTE]) luaL_error(lua, "%s: 'passes' has no pass to execute", program->variant);
  if (!passes[WLMI_WHEN_PREPARE] != !memcmp(&program->prepared, &none, sizeof none))
    luaL_error(lua, "%s: a pass with when = \"prepare\" and bytes in 'prepared' go together", program->variant);
}

static void get_program(lua_State *lua, wlmi_program *program) {
  get_string(lua, "split", program->split, sizeof program->split);
  get_bytes(lua, "workspace", &program->workspace);
  get_bytes(lua, "prepared", &program->prepared);
  program->max_registers = (int)get_integer(lua, "registers", 0);
  program->max_spilled = (int)get_integer(lua, "spilled", 0);
  program->deterministic = get_boolean(lua, "deterministic");
  program->uses_b = get_boolean(lua, "uses_b");
  program->walks_a = get_boolean(lua, "walks_a");
  program->is_batched = get_boolean(lua, "batch");
  program->takes_b_columns = get_boolean(lua, "b_steps");
  program->rows_together = get_integer(lua, "rows_together", 0);
  lua_getfield(lua, -1, "passes");
  program->pass_count = (int)luaL_len(lua, -1);
  if (program->pass_count < 1 || program->pass_count > WLMI_MAX_PASSES)
    luaL_error(lua, "'passes' must have 1 to %d entries", WLMI_MAX_PASSES);
  for (int i = 0; i < program->pass_count; i++) {
    lua_geti(lua, -1, i + 1);
    get_pass(lua, &program->passes[i]);
    lua_pop(lua, 1);
  }
  check_passes(lua, program);
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "source");
  program->source = wlmi_strdup(luaL_checkstring(lua, -1));
  if (!program->source) raise_status(lua, WLM_ERR_OUT_OF_MEMORY);
  lua_pop(lua, 1);
}

/* ---- files ------------------------------------------------------------------------------------ */

/* require() of the generator's own modules, which always come from the library itself. Modules are kept in the
 * function's upvalue. */
static int require_module(lua_State *lua) {
  const char *module = luaL_checkstring(lua, 1);
  const char *name = lua_pushfstring(lua, "%s.lua", module);
  size_t size;
  if (lua_getfield(lua, lua_upvalueindex(1), module) != LUA_TNIL) return 1;
  const char *text = wlmi_archive_find(name, &size);
  if (!text) return luaL_error(lua, "no module '%s' in the library", module);
  const char *chunk = lua_pushfstring(lua, "=generator/%s", name);
  if (luaL_loadbufferx(lua, text, size, chunk, "t") != LUA_OK) return lua_error(lua);
  lua_call(lua, 0, 1);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, lua_upvalueindex(1), module);
  return 1;
}

/* load(text, name, mode, environment) of text alone: Lua does not verify compiled chunks, and a malicious one can
 * access any memory. */
static int load_text(lua_State *lua) {
  size_t size;
  const char *text = luaL_checklstring(lua, 1, &size), *name = luaL_checkstring(lua, 2);
  if (luaL_loadbufferx(lua, text, size, name, "t") != LUA_OK) {
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }
  if (lua_isnoneornil(lua, 4)) return 1;
  lua_pushvalue(lua, 4);
  lua_setupvalue(lua, -2, 1);
  return 1;
}

/* The current line of the caller of the Lua function that calls this; 0 if it is not known. */
static int calling_line(lua_State *lua) {
  lua_Debug caller;
  lua_pushinteger(lua, lua_getstack(lua, 2, &caller) && lua_getinfo(lua, "l", &caller) && caller.currentline > 0
                           ? caller.currentline
                           : 0);
  return 1;
}

typedef struct file_text {
  char *text;
  size_t size;
} file_text;

static int push_text(lua_State *lua) {
  const file_text *file = lua_touserdata(lua, 1);
  lua_pushlstring(lua, file->text, file->size);
  return 1;
}

/* Copies the text to Lua under its own pcall, so that the text is released if Lua runs out of memory. */
static int read_template(lua_State *lua) {
  const char *folder = lua_tostring(lua, lua_upvalueindex(1));
  const char *name = luaL_checkstring(lua, 1);
  file_text file;
  lua_settop(lua, 1);
  lua_pushcfunction(lua, push_text);
  lua_pushlightuserdata(lua, &file);
  const wlm_status status = wlmi_template_read(folder, name, &file.text, &file.size);
  if (status != WLM_OK) return raise_status(lua, status);
  int result = lua_pcall(lua, 1, 1, 0);
  wlmi_free(file.text);
  return result == LUA_OK ? 1 : lua_error(lua);
}

/* Of the library's own families the version is the number in family.lua, of others a hash of their files, so that a
 * changed template never meets measurements of another text. */
static wlm_status add_family(wlmi_families *families, const char *folder, const char *name, uint64_t number) {
  char version[WLMI_HASH_HEX];
  wlmi_hash hash = {0, number};
  if (folder) WLM_CHECK(wlmi_template_hash(folder, name, &hash));
  wlmi_hash_to_hex(hash, version);
  return wlmi_families_add(families, name, version);
}

/* add(family, version), add(family, parameter, value) */
static int add_to_families(lua_State *lua) {
  wlmi_families *families = lua_touserdata(lua, lua_upvalueindex(1));
  const char *folder = lua_tostring(lua, lua_upvalueindex(2)), *name = luaL_checkstring(lua, 1);
  const wlm_status status = lua_isnoneornil(lua, 3)
                                ? add_family(families, folder, name, (uint64_t)luaL_checkinteger(lua, 2))
                                : wlmi_families_add_value(families, luaL_checkstring(lua, 2), luaL_checkstring(lua, 3));
  return status == WLM_OK ? 0 : raise_status(lua, status);
}

static void push_name(void *user, const char *name) {
  lua_State *lua = user;
  lua_pushstring(lua, name);
  lua_seti(lua, -2, luaL_len(lua, -2) + 1);
}

/* ---- entries: one C function each under lua_pcall ------------------------------------------------- */

typedef struct call {
  const char *folder;
  wlmi_families *families; /* filled at creation, read later */
  const char *function;    /* of variants.lua; it gets those of the next three that are set */
  const wlmi_variant *variant;
  const wlmi_spec *spec;
  const wlmi_limits *limits;
  wlmi_custom_source custom; /* of the spec */
  /* Where the result goes; only one of them is set. */
  wlmi_text *text;
  description **described;
  wlmi_program *program;
} call;

static call *pushed_call(lua_State *lua) { return lua_touserdata(lua, 1); }

static void push_function(lua_State *lua, const char *name) {
  lua_getglobal(lua, "variants");
  lua_getfield(lua, -1, name);
  lua_remove(lua, -2);
}

/* Lua makes the metatable of long buffers with the first one. If that ran out of memory, half a metatable would stay,
 * and with it every later long buffer would fail. So there is a first one before the state is used. */
static void make_long_buffer(lua_State *lua) {
  luaL_Buffer buffer;
  luaL_buffinitsize(lua, &buffer, 2 * LUAL_BUFFERSIZE);
  luaL_pushresultsize(&buffer, 0);
}

/* Opens Lua without access to files, processes, other libraries and debugging: no package, io, os and debug, and only
 * text chunks. */
static int do_load(lua_State *lua) {
  call *c = pushed_call(lua);
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  make_long_buffer(lua);
  lua_settop(lua, 1);
  lua_pushnil(lua);
  lua_setglobal(lua, "dofile");
  lua_pushnil(lua);
  lua_setglobal(lua, "loadfile");
  lua_register(lua, "load", load_text);
  lua_register(lua, "calling_line", calling_line);
  lua_newtable(lua);
  lua_pushcclosure(lua, require_module, 1);
  lua_pushvalue(lua, -1);
  lua_setglobal(lua, "require");
  lua_pushliteral(lua, "variants");
  lua_call(lua, 1, 1);
  lua_setglobal(lua, "variants");
  push_function(lua, "load");
  lua_newtable(lua);
  const wlm_status status = wlmi_template_names(c->folder, push_name, lua);
  if (status != WLM_OK) return raise_status(lua, status);
  lua_pushstring(lua, c->folder);
  lua_pushcclosure(lua, read_template, 1);
  lua_pushlightuserdata(lua, c->families);
  lua_pushstring(lua, c->folder);
  lua_pushcclosure(lua, add_to_families, 2);
  lua_call(lua, 3, 0);
  return 0;
}

/* The table on top of the stack. */
static void get_candidate(lua_State *lua, const wlmi_families *families, wlmi_candidate *candidate) {
  size_t size;
  lua_getfield(lua, -1, "value");
  const char *value = lua_tolstring(lua, -1, &size);
  memcpy(&candidate->value, value, size);
  lua_pop(lua, 1);
  if (!wlmi_variant_print(families, &candidate->value, candidate->variant))
    luaL_error(lua, "%s...: the name is too long", candidate->variant);
  candidate->lanes = wlmi_variant_integer(families, &candidate->value, "lanes");
  candidate->batch = wlmi_variant_integer(families, &candidate->value, "batch");
  candidate->whole_rows = get_boolean(lua, "whole_rows");
  candidate->walks_a = get_boolean(lua, "walks_a");
  candidate->simple = get_boolean(lua, "simple");
  lua_getfield(lua, -1, "passes");
  for (lua_Integer i = luaL_len(lua, -1); i >= 1; i--) {
    wlmi_pass pass;
    lua_geti(lua, -1, i);
    get_pass(lua, &pass);
    lua_pop(lua, 1);
    candidate->launches += pass.when == WLMI_WHEN_EXECUTE;
    if (pass.when == WLMI_WHEN_PREPARE)
      candidate->prepares = 1;
    else if (pass.units != WLMI_UNITS_COLS || !candidate->pass.units_per_block)
      candidate->pass = pass;
  }
  lua_pop(lua, 1);
}

static void get_description(lua_State *lua, const call *c) {
  const int64_t count = luaL_len(lua, -1);
  description *described = wlmi_alloc_zero(1, sizeof *described + (size_t)count * sizeof *described->candidates);
  *c->described = described;
  if (!described) return (void)raise_status(lua, WLM_ERR_OUT_OF_MEMORY);
  described->list = (wlmi_candidate_list){c->families, described->candidates, count};
  for (int64_t i = 0; i < count; i++) {
    lua_geti(lua, -1, i + 1);
    get_candidate(lua, c->families, &described->candidates[i]);
    lua_pop(lua, 1);
  }
}

static int do_call(lua_State *lua) {
  const call *c = pushed_call(lua);
  push_function(lua, c->function);
  const int before = lua_gettop(lua);
  if (c->variant) lua_pushlstring(lua, (const char *)c->variant, sizeof *c->variant);
  if (c->spec) push_problem(lua, c->spec, &c->custom);
  if (c->limits) push_limits(lua, c->limits);
  lua_call(lua, lua_gettop(lua) - before, 1);
  const int is_program = c->program && lua_istable(lua, -1); /* otherwise the text says why there is none */
  if (c->text && !is_program) wlmi_text_puts(c->text, luaL_checkstring(lua, -1));
  if (c->described) get_description(lua, c);
  if (is_program) get_program(lua, c->program);
  return 0;
}

static wlm_status enter(wlmi_generator *generator, lua_CFunction function, call *c) {
  if (generator->half_changed)
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "this process was forked while another thread emitted a kernel; create a context in the child");
  wlm_status status = c->spec ? wlmi_custom_source_make(c->spec, &c->custom) : WLM_OK;
  if (status != WLM_OK) return status;
  pthread_mutex_lock(&generator->lock);
  lua_State *lua = generator->lua;
  lua_settop(lua, 0);
  lua_pushcfunction(lua, function);
  lua_pushlightuserdata(lua, c);
  int result = lua_pcall(lua, 1, 0, 0);
  const int failed_in_c = result != LUA_OK && lua_touserdata(lua, -1) == &no_memory;
  if (result == LUA_ERRMEM || failed_in_c || (c->text && c->text->failed))
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the generator ran out of memory");
  else if (result != LUA_OK)
    status = wlmi_fail(WLM_ERR_TEMPLATE, "%s",
                       lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "a family raised what is no text");
  lua_settop(lua, 0);
  pthread_mutex_unlock(&generator->lock);
  wlmi_custom_source_release(&c->custom);
  return status;
}

wlm_status wlmi_generator_create(const char *folder, wlmi_generator **out) {
  *out = NULL;
  wlmi_generator *generator = wlmi_alloc_zero(1, sizeof *generator);
  if (!generator) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "generator");
  pthread_mutex_init(&generator->lock, NULL);
  generator->lua = lua_newstate(lua_memory, NULL);
  wlm_status status = generator->lua
                          ? enter(generator, do_load, &(call){.folder = folder, .families = &generator->families})
                          : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "generator");
  if (status == WLM_OK) status = wlmi_fork_watch_begin(&generator->forks, generator_in_child, generator);
  if (status == WLM_OK)
    *out = generator;
  else
    wlmi_generator_destroy(generator);
  return status;
}

void wlmi_generator_destroy(wlmi_generator *generator) {
  if (!generator) return;
  wlmi_fork_watch_end(&generator->forks);
  if (generator->lua && !generator->half_changed) lua_close(generator->lua);
  for (int i = 0; i < DESCRIPTIONS; i++) wlmi_candidates_drop(generator->kept[i] ? &generator->kept[i]->list : NULL);
  wlmi_families_release(&generator->families);
  pthread_mutex_destroy(&generator->lock);
  wlmi_free(generator);
}

wlm_status wlmi_generator_list(wlmi_generator *generator, wlmi_text *text) {
  return enter(generator, do_call, &(call){.function = "list", .text = text});
}

const wlmi_families *wlmi_generator_families(const wlmi_generator *generator) { return &generator->families; }

/* ---- candidates ------------------------------------------------------------------------------------- */

static wlmi_hash description_key(const wlmi_spec *spec, const wlmi_limits *limits) {
  const struct {
    wlmi_hash spec;
    int64_t target, arch, threads_per_block, shared_bytes, processors, any_width;
  } key = {wlmi_spec_id(spec),   limits->target,     limits->arch,     limits->threads_per_block,
           limits->shared_bytes, limits->processors, limits->any_width};
  return wlmi_hash_bytes(&key, sizeof key);
}

static description *find_kept(wlmi_generator *generator, const wlmi_hash *key) {
  description *found = NULL;
  pthread_mutex_lock(&generator->lock);
  for (int i = 0; i < DESCRIPTIONS && !found; i++)
    if (generator->kept[i] && !memcmp(&generator->kept[i]->key, key, sizeof *key)) found = generator->kept[i];
  if (found) atomic_fetch_add(&found->users, 1);
  pthread_mutex_unlock(&generator->lock);
  return found;
}

/* Replaces the oldest list. */
static void keep_description(wlmi_generator *generator, description *fresh) {
  pthread_mutex_lock(&generator->lock);
  description **place = &generator->kept[generator->oldest], *old = *place;
  generator->oldest = (generator->oldest + 1) % DESCRIPTIONS;
  *place = fresh;
  pthread_mutex_unlock(&generator->lock);
  if (old) wlmi_candidates_drop(&old->list);
}

wlm_status wlmi_generator_describe(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                                   const wlmi_candidate_list **list) {
  const wlmi_hash key = description_key(spec, limits);
  description *found = find_kept(generator, &key);
  *list = NULL;
  wlm_status status = WLM_OK;
  if (!found) {
    WLM_TRY(enter(generator, do_call,
                  &(call){.families = &generator->families,
                          .function = "describe",
                          .spec = spec,
                          .limits = limits,
                          .described = &found}));
    found->key = key;
    atomic_init(&found->users, 2); /* users: the caller and the generator */
    keep_description(generator, found);
  }
  *list = &found->list;
  return WLM_OK;
done:
  wlmi_free(found);
  return status;
}

void wlmi_candidates_drop(const wlmi_candidate_list *list) {
  description *described = (description *)list;
  if (described && atomic_fetch_sub(&described->users, 1) == 1) wlmi_free(described);
}

wlm_status wlmi_generator_refusal(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                                  const wlmi_limits *limits, wlmi_text *reason) {
  wlmi_variant variant;
  WLM_CHECK(wlmi_variant_parse(&generator->families, name, &variant));
  return enter(generator, do_call,
               &(call){.function = "refusal", .variant = &variant, .spec = spec, .limits = limits, .text = reason});
}

/* ---- programs --------------------------------------------------------------------------------------- */

/* name: of the program, and of the function if it belongs to no variant. */
static wlm_status make_program(wlmi_generator *generator, const char *name, call c, wlmi_program *program) {
  *program = (wlmi_program){.source = NULL};
  snprintf(program->variant, sizeof program->variant, "%s", name);
  c.function = c.variant ? "emit" : name;
  c.program = program;
  const wlm_status status = enter(generator, do_call, &c);
  if (status != WLM_OK) wlmi_program_release(program);
  return status;
}

wlm_status wlmi_generator_emit(wlmi_generator *generator, const char *name, const wlmi_spec *spec,
                               const wlmi_limits *limits, wlmi_program *program) {
  wlmi_variant variant;
  memset(program, 0, sizeof *program);
  const wlm_status status = wlmi_variant_parse(&generator->families, name, &variant);
  return status == WLM_OK ? wlmi_generator_emit_variant(generator, &variant, spec, limits, program) : status;
}

wlm_status wlmi_generator_emit_variant(wlmi_generator *generator, const wlmi_variant *variant, const wlmi_spec *spec,
                                       const wlmi_limits *limits, wlmi_program *program) {
  char name[WLMI_VARIANT_NAME];
  wlmi_text refusal = {0};
  wlmi_variant_print(&generator->families, variant, name);
  wlm_status status = make_program(
      generator, name, (call){.variant = variant, .spec = spec, .limits = limits, .text = &refusal}, program);
  if (status == WLM_OK && refusal.size)
    status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "'%s' is no candidate here: it %s", name, refusal.data);
  wlmi_text_release(&refusal);
  return status;
}

wlm_status wlmi_generator_emit_program(wlmi_generator *generator, wlmi_helper helper, const wlmi_variant *variant,
                                       const wlmi_spec *spec, const wlmi_limits *limits, wlmi_program *program) {
  static const char *const names[WLMI_HELPERS] = {NULL,  "argmax_gradient", "stats",  "transpose",
                                                  "coo", "validate",        "blocks", "layout"};
  if (helper == WLMI_HELPER_NONE) return wlmi_generator_emit_variant(generator, variant, spec, limits, program);
  if (helper == WLMI_HELPER_LAYOUT) spec = NULL; /* it depends on none */
  return make_program(generator, names[helper], (call){.spec = spec, .limits = limits}, program);
}
