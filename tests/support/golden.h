/* Golden tables: files in the source tree with expected results, one row per line. Include after cmocka. */
#pragma once

#include "core/base/text.h"

#define GOLDEN_UPDATE "if they should, update with 'cmake --build " WLM_BINARY_DIR " --target golden' and commit"

int golden_updates(void); /* whether WARPLOOM_UPDATE_GOLDEN is set in the environment */

/* Reads the first line of the table; "" if the file does not exist. */
void golden_header(const char *path, char *header, size_t size);

/* Sorts the rows (lines that end with a newline) and compares them with the table at `path`, below its header.
 * Returns 1 if they are equal; otherwise prints the rows that differ on stderr. With WARPLOOM_UPDATE_GOLDEN it
 * writes the table and returns 1. */
int golden_is(const char *path, const char *header, wlmi_text *rows);
