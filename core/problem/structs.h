/* Reads and writes public structs of other versions. Within one SOVERSION structs only grow, so a caller's struct may
 * be shorter or longer than this library's. */
#pragma once

#include "core/base/status.h"

/* One public struct: its name in messages, its defaults, today's size and that of the SOVERSION's first release. */
typedef struct wlmi_struct {
  const char *name;
  const void *defaults;
  size_t size, first_size;
} wlmi_struct;

extern const wlmi_struct wlmi_struct_context_options, wlmi_struct_csr, wlmi_struct_coo, wlmi_struct_bsr,
    wlmi_struct_problem, wlmi_struct_execute_args, wlmi_struct_attention_operands, wlmi_struct_message_args,
    wlmi_struct_message_table, wlmi_struct_matrix_options, wlmi_struct_stats, wlmi_struct_tune_options,
    wlmi_struct_online_options, wlmi_struct_online_state;

/* Copies a caller's struct to `to`, which has this library's size: fields that the caller's version lacks get their
 * defaults. WLM_ERR_INVALID_ARGUMENT where it is NULL, shorter than the first version, or longer with a tail that is
 * not zero. */
wlm_status wlmi_struct_read(const wlmi_struct *type, const void *from, void *to);
/* The same for a struct that the library fills: writes as many bytes of `from` as the caller's struct has. */
wlm_status wlmi_struct_write(const wlmi_struct *type, const void *from, void *to);

/* The same, but without a copy if the caller's struct has this library's size, which is the usual case. */
static inline wlm_status wlmi_struct_see(const wlmi_struct *type, const void *from, void *copy, const void **seen) {
  *seen = from;
  if (from && *(const size_t *)from == type->size) return WLM_OK;
  *seen = copy;
  return wlmi_struct_read(type, from, copy);
}

/* WLM_ERR_INVALID_ARGUMENT naming the first of the arguments that is NULL; `call` is the function that was called. */
wlm_status wlmi_need(const char *call, const char *names, ...);
