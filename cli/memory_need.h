/* Compares the memory that a command needs on this machine with what is free, before it allocates. */
#pragma once

#include "cli/options.h"
#include "core/csr/csr.h"

/* What a command does with the matrix of INPUT. */
typedef struct wlmi_memory_need {
  const wlmi_cli_options *options;
  const char *input;
  const wlm_problem *problem; /* a product with n columns; n = 0: none, and these two may be NULL */
  const wlm_execute_args *args;
  int64_t n;
  int on_host; /* the device is this machine */
} wlmi_memory_need;

/* Reads the INPUT. WLM_ERR_OUT_OF_MEMORY as soon as its size is known, with the operand that does not fit and what to
 * do, unless --force was given. */
wlm_status wlmi_input_read_fitting(const wlmi_memory_need *need, wlmi_csr_host *csr);
/* Whether that would succeed (wlmi_input_check). */
wlm_status wlmi_input_check_fitting(const wlmi_memory_need *need);

/* The largest -n. */
int64_t wlmi_widest(const wlmi_cli_options *options);
