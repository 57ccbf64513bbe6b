/* Reads the lines of an interchange file. Strict: a line must be a JSON object with exactly the keys of a measurement
 * and its id, each of its type, and the id must be the one of the content. Unknown keys are refused, since an id
 * can't vouch for what this version does not know. The order of the keys and spaces between them are free. */
#ifndef WLM_DB_JSON_LINE_H
#define WLM_DB_JSON_LINE_H

#include "db/pin.h"
#include "db/recorded.h"

enum { WLM_INTERCHANGE_VERSION = 1 };

typedef struct wlmi_json_reader wlmi_json_reader;
wlm_status wlmi_json_reader_open(wlmi_json_reader **reader);
void wlmi_json_reader_close(wlmi_json_reader *reader); /* NULL is allowed */

/* The first line, {"warploom":"tuned","version":1}. WLM_ERR_PARSE says what is wrong, without file and line. */
wlm_status wlmi_json_read_header(wlmi_json_reader *reader, const char *line);
/* A record that owns its strings. WLM_ERR_PARSE as above. */
wlm_status wlmi_json_read_measurement(wlmi_json_reader *reader, const char *line, wlmi_measurement_record *record);

/* By the members "pin" and "recorded"; what has neither is taken for a measurement. */
typedef enum wlmi_line_kind { WLM_LINE_MEASUREMENT, WLM_LINE_PIN, WLM_LINE_RECORDED } wlmi_line_kind;
wlmi_line_kind wlmi_json_kind(wlmi_json_reader *reader, const char *line);
/* A pin that owns its strings; just as strict. */
wlm_status wlmi_json_read_pin(wlmi_json_reader *reader, const char *line, wlmi_pin_record *pin);
/* A recorded problem that owns its strings; just as strict. */
wlm_status wlmi_json_read_recorded(wlmi_json_reader *reader, const char *line, wlmi_recorded *recorded);

#endif
