/* Golden tables: files in the source tree with expected results, one row per line. Include after cmocka. */
#ifndef WLM_TESTS_GOLDEN_H
#define WLM_TESTS_GOLDEN_H

#include "common/text.h"

#define GOLDEN_UPDATE "if they should, update with 'cmake --build " WLM_BINARY_DIR " --target golden' and commit"

int golden_updates(void); /* whether WARPLOOM_UPDATE_GOLDEN is set in the environment */

/* The first line of the table; "" where there is no such file. */
void golden_header(const char *path, char *header, size_t size);

/* Sorts the rows, lines that end with a newline. Whether the table at `path` consists of the header and these rows;
 * prints the rows that differ on stderr. With WARPLOOM_UPDATE_GOLDEN it writes the table, and the answer is yes. */
int golden_is(const char *path, const char *header, wlmi_text *rows);

#endif
