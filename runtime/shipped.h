/* Where the files are that come with the library. */
#ifndef WLM_RUNTIME_SHIPPED_H
#define WLM_RUNTIME_SHIPPED_H

#include "core/base/text.h"

/* Appends the path of the shipped database, found from the file that this library is linked into. Appends nothing if
 * there is none. */
void wlmi_system_database_path(wlmi_text *path);
/* Appends the path of the archive beside the shipped database; nothing if there is none. */
void wlmi_archive_shipped_path(wlmi_text *path);

#endif
