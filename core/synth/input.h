/* INPUT of the command line: the name of a synthetic matrix (twin:..., uniform:..., synth:...), a matrix file
 * (core/csr/formats.h), or "-" for one on standard input. */
#pragma once

#include "core/csr/csr.h"
#include "warploom/warploom.h"

/* Reads a file from its begin to its end once, so it may be a pipe. `check` is called when the size is known, from the
 * name or the head of the file, and before memory is taken for it; reading ends with its status unless that is WLM_OK.
 */
wlm_status wlmi_input_read_checked(const char *input, const wlmi_size_check *check, wlmi_csr_host *out);
wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out);
/* Whether it can be read: files are read to their end, but synthetic matrices are not made. A pipe can be read once
 * only, so nothing is said against it. */
wlm_status wlmi_input_check(const char *input, const wlmi_size_check *check);

/* The name of a synthetic matrix that has given stats, such as those of a recorded problem. */

enum { WLMI_STAND_IN_NAME = 192 };

/* An input for wlmi_input_read: a synthetic matrix with the rows, columns, non-zeros and longest row of the stats, and
 * with their CV as far as possible. Its columns are random, because the stats say nothing about them. */
void wlmi_stand_in_name(const wlm_stats *stats, char name[WLMI_STAND_IN_NAME]);
