/* Compares the memory that a command needs on this machine with what is free, before it allocates. */
#ifndef WLM_CLI_MEMORY_NEED_H
#define WLM_CLI_MEMORY_NEED_H

#include "cli/options.h"

/* For an INPUT whose size is known before it is read; others pass. `problem` and `args` describe a product with n
 * columns, 0 = no product. on_host = 1: the device is this machine. WLM_ERR_OUT_OF_MEMORY names the operand that does
 * not fit and what to do, unless --force was given. */
wlm_status wlmi_check_memory(const wlmi_cli_options *options, const char *input, const wlm_problem *problem,
                             const wlm_execute_args *args, int64_t n, int on_host);

/* The largest -n. */
int64_t wlmi_widest(const wlmi_cli_options *options);

#endif
