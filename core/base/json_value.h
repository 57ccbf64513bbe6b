/* JSON values of Jansson. Where memory runs out they are NULL, and so is every value made from such a one; only
 * wlmi_json_dump reports it. */
#pragma once

#include <jansson.h>

#include "core/base/text.h"

/* Appends the value, whose reference it takes, and releases it. flags: of json_dumps. */
void wlmi_json_dump(json_t *value, size_t flags, wlmi_text *out);
