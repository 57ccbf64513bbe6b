/* Runs other programs without a shell. */
#ifndef WLM_BASE_PROCESS_H
#define WLM_BASE_PROCESS_H

#include "core/base/text.h"

/* Finds argv[0] in PATH, runs it and waits for its end. Returns its exit status, 1 if a signal ended it, or -1 if it
 * did not start. It reads the open file `input` (-1 = nothing) and writes stdout and stderr to the file `output` (NULL
 * = those of this program). */
int wlmi_process_run(char *const argv[], int input, const char *output);

/* Appends the path of the file that wlmi_process_run would run for `name`. Appends nothing where PATH has none. */
void wlmi_process_find(const char *name, wlmi_text *path);

#endif
