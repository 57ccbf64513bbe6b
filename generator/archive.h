/* The files that the build embeds into the library: templates and the generator's Lua. */
#pragma once

struct wlmi_archive_file {
  const char *name; /* "row_crc/kernel.cu.in", "engine.lua" */
  const char *begin, *end;
};
extern const struct wlmi_archive_file wlmi_archive[];
extern const int wlmi_archive_count;
