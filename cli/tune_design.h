/* tune without an INPUT: the device on a design of synthetic matrices. */
#ifndef WLM_CLI_TUNE_DESIGN_H
#define WLM_CLI_TUNE_DESIGN_H

#include "cli/options.h"

int wlmi_tune_design(const wlmi_cli_options *options);

#endif
