/* What a command is about to allocate on this machine, compared with what is free before it does. */
#ifndef WLM_CLI_MEMORY_NEED_H
#define WLM_CLI_MEMORY_NEED_H

#include "cli/options.h"

/* Of an INPUT whose sizes can be told before it is read; others pass. `problem` and `args` as for a product with n
 * columns, 0 = without one. `on_host`: the device is this machine, too. WLM_ERR_OUT_OF_MEMORY names the operand that
 * does not fit and the way out, unless the options have --force. */
wlm_status wlmi_check_memory(const wlmi_cli_options *options, const char *input, const wlm_problem *problem,
                             const wlm_execute_args *args, int64_t n, int on_host);

/* The largest -n. */
int64_t wlmi_widest(const wlmi_cli_options *options);

#endif
