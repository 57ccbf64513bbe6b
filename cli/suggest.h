/* What a user may have meant by a name that is misspelled. */
#pragma once

enum { WLMI_SUGGESTION = 64 };

typedef const char *wlmi_name_at(int i); /* the i-th name; NULL behind the last */

/* Writes "did you mean 'tune'? ", with the name most similar to `typed` behind `dashes`; "" if there is none. */
void wlmi_suggest(const char *typed, const char *dashes, wlmi_name_at *name_at, char suggestion[WLMI_SUGGESTION]);
