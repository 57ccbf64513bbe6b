#include "bench/groups.h"

#include <stdio.h>
#include <string.h>

#include "generator/archive.h"

extern const struct wlmi_archive_file wlmi_suite_files[];
extern const int wlmi_suite_files_count;

static const struct wlmi_archive_file *groups_file(void) {
  for (int i = 0; i < wlmi_suite_files_count; i++)
    if (!strcmp(wlmi_suite_files[i].name, "groups.tsv")) return &wlmi_suite_files[i];
  return NULL;
}

/* Lines are "PREFIX<tab>GROUP"; "#" begins a comment. */
void wlmi_group_of(const char *matrix, char group[WLM_GROUP_NAME]) {
  const struct wlmi_archive_file *file = groups_file();
  snprintf(group, WLM_GROUP_NAME, "%s", matrix);
  for (const char *line = file ? file->begin : NULL; line && line < file->end;) {
    const char *end = memchr(line, '\n', (size_t)(file->end - line));
    if (!end) end = file->end;
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    if (*line != '#' && tab && !strncmp(matrix, line, (size_t)(tab - line))) {
      snprintf(group, WLM_GROUP_NAME, "%.*s", (int)(end - tab - 1), tab + 1);
      return;
    }
    line = end + 1;
  }
}
