/* Writes and reads content as JSON lines: a header, then one line for each measurement sorted by id, for each pin, and
 * for each recorded problem. Equal contents give equal bytes. Choices and models are not written, because they are
 * derived again.
 *
 * Reading is strict: a line must be a JSON object with exactly the keys of a measurement and its id, of a pin or of a
 * recorded problem, each of its type, and the id must match the content. Unknown keys are refused, because the id of a
 * line with them cannot be verified. The order of the keys and spaces between them are free. Of a file whose header has
 * a higher version than this library writes, lines that cannot be read are left out, and one warning counts them. */
#pragma once

#include <stdio.h>

#include "core/records/content.h"

wlm_status wlmi_lines_write(const wlmi_content *content, wlmi_text *out);

/* Reads everything; release it with wlmi_content_release. Errors name the source and the line: "name:17: time_ps must
 * be a positive integer". */
wlm_status wlmi_lines_read_file(FILE *file, const char *name, wlmi_content *content);
wlm_status wlmi_lines_read_path(const char *path, wlmi_content *content); /* WLM_ERR_NOT_FOUND, WLM_ERR_IO */
wlm_status wlmi_lines_read_string(const char *text, const char *name, wlmi_content *content);
