/* Reads the matrices and widths of a suite, bench/suites/NAME.txt. The build embeds these files into the command, so no
 * checkout is needed. "n" and numbers are the widths; "#" begins a comment; any other line is a matrix: the name of a
 * synthetic one, or of a file in the folder of data. */
#pragma once

#include "cli/options.h"

enum { WLM_INPUT_PATH = 1024, WLM_GROUP_NAME = 128 };

typedef struct wlmi_suite_file {
  char *text; /* what the names point into */
  const char **names;
  int count;
  int64_t widths[WLM_CLI_MAX_WIDTHS];
  int width_count;
} wlmi_suite_file;

/* WLM_ERR_NOT_FOUND where the suite has no file, WLM_ERR_PARSE with the line of a file that is wrong. */
wlm_status wlmi_suite_file_read(const char *suite, wlmi_suite_file *file);
void wlmi_suite_file_release(wlmi_suite_file *file); /* also of a zeroed one */

/* The input to read: a synthetic name (with a colon), "-" or a file as it is; any other name is DATA/NAME.mtx.gz or
 * DATA/NAME/NAME.mtx.gz. WLM_ERR_NOT_FOUND says what to do; `data` may be NULL. */
wlm_status wlmi_suite_input(const char *data, const char *input, char path[WLM_INPUT_PATH]);

/* The group of a matrix by bench/suites/groups.tsv, or its own name if it has none. */
void wlmi_group_of(const char *matrix, char group[WLM_GROUP_NAME]);
