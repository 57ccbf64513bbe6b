#include "core/problem/structs.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"
#include "warploom/warploom_tune.h"

static const wlm_context_options context_options = WLM_CONTEXT_OPTIONS_INIT;
static const wlm_csr csr = WLM_CSR_INIT;
static const wlm_coo coo = WLM_COO_INIT;
static const wlm_problem problem = WLM_PROBLEM_INIT;
static const wlm_execute_args execute_args = WLM_EXECUTE_ARGS_INIT;
static const wlm_attention_operands attention_operands = WLM_ATTENTION_OPERANDS_INIT;
static const wlm_message_args message_args = WLM_MESSAGE_ARGS_INIT;
static const wlm_message_table message_table = WLM_MESSAGE_TABLE_INIT;
static const wlm_matrix_options matrix_options = WLM_MATRIX_OPTIONS_INIT;
static const wlm_stats stats = WLM_STATS_INIT;
static const wlm_tune_options tune_options = WLM_TUNE_OPTIONS_INIT;
static const wlm_online_options online_options = WLM_ONLINE_OPTIONS_INIT;
static const wlm_online_state online_state = WLM_ONLINE_STATE_INIT;

/* first_size is the size of SOVERSION 0.2's first release: a field that is added later leaves it as it is. */
#define GROWN(name, first) \
  { "wlm_" #name, &name, sizeof name, first }
#define STRUCT(name) GROWN(name, sizeof name)
const wlmi_struct wlmi_struct_context_options = GROWN(context_options, offsetof(wlm_context_options, device_allocator));
const wlmi_struct wlmi_struct_csr = STRUCT(csr);
const wlmi_struct wlmi_struct_coo = STRUCT(coo);
const wlmi_struct wlmi_struct_problem = GROWN(problem, offsetof(wlm_problem, score));
const wlmi_struct wlmi_struct_execute_args = GROWN(execute_args, offsetof(wlm_execute_args, operands));
const wlmi_struct wlmi_struct_attention_operands = STRUCT(attention_operands);
const wlmi_struct wlmi_struct_message_args = STRUCT(message_args);
const wlmi_struct wlmi_struct_message_table = STRUCT(message_table);
const wlmi_struct wlmi_struct_matrix_options = STRUCT(matrix_options);
const wlmi_struct wlmi_struct_stats = STRUCT(stats);
const wlmi_struct wlmi_struct_tune_options = STRUCT(tune_options);
const wlmi_struct wlmi_struct_online_options = STRUCT(online_options);
const wlmi_struct wlmi_struct_online_state = STRUCT(online_state);

static size_t size_of(const void *any_struct) {
  size_t size;
  memcpy(&size, any_struct, sizeof size);
  return size;
}

static wlm_status check_size(const wlmi_struct *type, const void *given) {
  if (!given) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: the pointer is NULL", type->name);
  const size_t size = size_of(given);
  if (size < type->first_size)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s.size is %zu, expected %zu; initialise it with its INIT macro",
                     type->name, size, type->size);
  return WLM_OK;
}

wlm_status wlmi_struct_read(const wlmi_struct *type, const void *from, void *to) {
  WLM_CHECK(check_size(type, from));
  const size_t size = size_of(from);
  for (size_t i = type->size; i < size; i++)
    if (((const char *)from)[i])
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                       "%s.size is %zu and this library knows %zu bytes; a field beyond them is set, which a newer "
                       "library would understand",
                       type->name, size, type->size);
  memcpy(to, type->defaults, type->size);
  memcpy(to, from, size < type->size ? size : type->size);
  memcpy(to, &type->size, sizeof type->size);
  return WLM_OK;
}

wlm_status wlmi_struct_write(const wlmi_struct *type, const void *from, void *to) {
  WLM_CHECK(check_size(type, to));
  const size_t size = size_of(to);
  memset(to, 0, size);
  memcpy(to, from, size < type->size ? size : type->size);
  memcpy(to, &size, sizeof size);
  return WLM_OK;
}

wlm_status wlmi_need(const char *call, const char *names, ...) {
  va_list arguments;
  va_start(arguments, names);
  const char *missing = NULL;
  size_t length = 0;
  for (const char *name = names; *name && !missing;) {
    length = strcspn(name, " ");
    if (!va_arg(arguments, const void *)) missing = name;
    name += length + (name[length] == ' ');
  }
  va_end(arguments);
  if (!missing) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: %.*s is NULL", call, (int)length, missing);
}

static wlm_status initialise(const wlmi_struct *type, void *to, size_t size) {
  if (!to) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: the pointer is NULL", type->name);
  if (size < type->first_size)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: size is %zu, must be %zu or more", type->name, size,
                     type->first_size);
  memset(to, 0, size);
  memcpy(to, type->defaults, size < type->size ? size : type->size);
  memcpy(to, &size, sizeof size);
  return WLM_OK;
}

#define INITIALISER(name) \
  wlm_status wlm_##name##_init(void *to, size_t size) { return initialise(&wlmi_struct_##name, to, size); }
INITIALISER(context_options)
INITIALISER(csr)
INITIALISER(coo)
INITIALISER(problem)
INITIALISER(execute_args)
INITIALISER(attention_operands)
INITIALISER(message_args)
INITIALISER(message_table)
INITIALISER(matrix_options)
INITIALISER(stats)
INITIALISER(tune_options)
INITIALISER(online_options)
INITIALISER(online_state)
