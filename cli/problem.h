/* Makes and checks the problem that the options describe. */
#pragma once

#include "cli/options.h"
#include "core/problem/spec.h"

/* The spec of a problem for matrices of these types. */
wlm_status wlmi_cli_spec(const wlm_problem *problem, wlm_index rowptr_type, wlm_index colind_type, wlm_type value_type,
                         int has_values, wlmi_spec *spec);
/* Makes options->problem the one of --message, if that was given. Whether the library supports the problem, for each N
 * if given; 0 after a message in the words of the options. Called before any input is read. */
int wlmi_cli_make_problem(wlmi_cli_options *options, const char *command, int knows_widths);
