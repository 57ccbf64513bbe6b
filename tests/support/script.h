/* Shell scripts that stand in for a compiler. */
#pragma once

#include "support/folder.h"

/* Writes an executable script of sh to the folder. The path is valid until the next call. */
const char *script_make(const test_folder *folder, const char *name, const char *text);

/* Waits until the file holds a process number, and returns it. */
int script_wait_for_start(const test_folder *folder, const char *name);

/* Waits until the process, whose number the file holds, has ended. */
void script_wait_for_end(const test_folder *folder, const char *name);
