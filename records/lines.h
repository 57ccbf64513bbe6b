/* Content as JSON lines: a header, then one line a measurement sorted by id, then one line a pin, then one a recorded
 * problem, so that equal contents give equal bytes. What is derived (choices, models) is made again and not written.
 *
 * Reading is strict: a line must be a JSON object with exactly the keys of a measurement and its id, of a pin or of a
 * recorded problem, each of its type, and the id must be the one of the content. Unknown keys are refused, because an
 * id cannot vouch for what this version does not know. The order of the keys and spaces between them are free. */
#ifndef WLM_RECORDS_LINES_H
#define WLM_RECORDS_LINES_H

#include <stdio.h>

#include "records/content.h"

wlm_status wlmi_lines_write(const wlmi_content *content, wlmi_text *out);

/* All of it: wlmi_content_release. Errors name the source and the line: "name:17: time_ps must be a positive integer".
 */
wlm_status wlmi_lines_read_file(FILE *file, const char *name, wlmi_content *content);
wlm_status wlmi_lines_read_string(const char *text, const char *name, wlmi_content *content);

#endif
