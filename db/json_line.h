/* Reads the lines of an interchange file. Strict: a line must be a JSON object with exactly the keys of a measurement
 * and its id, of a pin or of a recorded problem, each of its type, and the id must be the one of the content. Unknown
 * keys are refused, because an id cannot vouch for what this version does not know. The order of the keys and spaces
 * between them are free.
 *
 * Errors are WLM_ERR_PARSE and say what is wrong, without file and line. */
#ifndef WLM_DB_JSON_LINE_H
#define WLM_DB_JSON_LINE_H

#include "db/content.h"

enum { WLM_INTERCHANGE_VERSION = 1 };

/* The first line, {"warploom":"tuned","version":1}. */
wlm_status wlmi_json_read_header(const char *line);
/* Adds what any other line holds to the content. A line with a member "pin" or "recorded" is taken for such a one. */
wlm_status wlmi_json_read_line(const char *line, wlmi_content *content);

#endif
