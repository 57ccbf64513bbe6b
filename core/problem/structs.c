#include "core/problem/structs.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "warploom/warploom_attention.h"
#include "warploom/warploom_message.h"
#include "warploom/warploom_tune.h"

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
  return wlmi_finish(WLM_OK);
}

/* The record of a struct of the interface, and its initialiser. first_size is the least size that is accepted, of
 * a build before SOVERSION 0.3's first release or of that: a field that is added later leaves it as it is. */
#define GROWN(name, NAME, first_size)                                                                     \
  static const wlm_##name default_##name = WLM_##NAME##_INIT;                                             \
  const wlmi_struct wlmi_struct_##name = {"wlm_" #name, &default_##name, sizeof(wlm_##name), first_size}; \
  wlm_status wlm_##name##_init(void *to, size_t size) { return initialise(&wlmi_struct_##name, to, size); }
#define STRUCT(name, NAME) GROWN(name, NAME, sizeof(wlm_##name))
GROWN(context_options, CONTEXT_OPTIONS, offsetof(wlm_context_options, device_allocator))
GROWN(csr, CSR, offsetof(wlm_csr, t_rowptr))
GROWN(coo, COO, offsetof(wlm_coo, base))
GROWN(problem, PROBLEM, offsetof(wlm_problem, score))
GROWN(execute_args, EXECUTE_ARGS, offsetof(wlm_execute_args, operands))
STRUCT(bsr, BSR)
STRUCT(attention_operands, ATTENTION_OPERANDS)
STRUCT(message_args, MESSAGE_ARGS)
STRUCT(message_table, MESSAGE_TABLE)
STRUCT(matrix_options, MATRIX_OPTIONS)
STRUCT(stats, STATS)
STRUCT(tune_options, TUNE_OPTIONS)
STRUCT(online_options, ONLINE_OPTIONS)
STRUCT(online_state, ONLINE_STATE)
