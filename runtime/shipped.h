/* Where the files are that come with the library. */
#pragma once

#include "core/base/text.h"

/* Append the path of the shipped database, and of the archive of compiled kernels, found from the file that this
 * library is linked into. They append nothing if there is none. */
void wlmi_system_database_path(wlmi_text *path);
void wlmi_archive_shipped_path(wlmi_text *path);
