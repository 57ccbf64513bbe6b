/* tune --recorded: what programs met that nothing near was tuned for. */
#ifndef WLM_CLI_TUNE_RECORDED_H
#define WLM_CLI_TUNE_RECORDED_H

#include "cli/options.h"

int wlmi_tune_recorded(const wlmi_cli_options *options);

#endif
