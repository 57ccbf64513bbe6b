#include "bench/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "generator/archive.h"

extern const struct wlmi_archive_file wlmi_suite_files[];
extern const int wlmi_suite_files_count;

static int has_ending(const char *text, const char *ending) {
  size_t size = strlen(text), tail = strlen(ending);
  return size > tail && !strcmp(text + size - tail, ending);
}

static int parse_widths(const char *text, wlmi_suite_file *file) {
  char *end;
  for (;; text = end) {
    text += strspn(text, " \t");
    if (!*text) return file->width_count > 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || n < 1 || n > 1 << 20 || file->width_count == WLMI_CLI_MAX_WIDTHS) return 0;
    file->widths[file->width_count++] = n;
  }
}

static wlm_status parse(const char *text, size_t size, const char *suite, wlmi_suite_file *file) {
  wlm_status status;
  int number = 0, lines = 1;
  *file = (wlmi_suite_file){0};
  for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
  WLM_TRY(wlmi_alloc_array((int64_t)size + 1, 1, "suite", (void **)&file->text));
  WLM_TRY(wlmi_alloc_array(lines, sizeof *file->names, "suite", (void **)&file->names));
  memcpy(file->text, text, size);
  file->text[size] = 0;
  for (char *line = file->text, *next; line; line = next) {
    number++;
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    line[strcspn(line, "#")] = 0;
    line += strspn(line, " \t");
    for (size_t last = strlen(line); last && strchr(" \t\r", line[last - 1]);) line[--last] = 0;
    if (!*line) continue;
    if (line[0] != 'n' || (line[1] != ' ' && line[1] != '\t'))
      file->names[file->count++] = line;
    else if (!parse_widths(line + 1, file))
      WLM_TRY(wlmi_fail(WLM_ERR_PARSE, "%s.txt:%d: n needs widths of 1 or more, as in n 16 32 64", suite, number));
  }
done:
  if (status != WLM_OK) wlmi_suite_file_release(file);
  return status;
}

static const struct wlmi_archive_file *find_file(const char *name, const char *ending) {
  char whole[64];
  snprintf(whole, sizeof whole, "%s%s", name, ending);
  for (int i = 0; i < wlmi_suite_files_count; i++)
    if (!strcmp(wlmi_suite_files[i].name, whole)) return &wlmi_suite_files[i];
  return NULL;
}

wlm_status wlmi_suite_file_read(const char *suite, wlmi_suite_file *file) {
  const struct wlmi_archive_file *found = find_file(suite, ".txt");
  *file = (wlmi_suite_file){0};
  if (!found) return wlmi_fail(WLM_ERR_NOT_FOUND, "suite %s has no list of matrices: name some", suite);
  return parse(found->begin, (size_t)(found->end - found->begin), suite, file);
}

void wlmi_suite_file_release(wlmi_suite_file *file) {
  wlmi_free(file->text);
  wlmi_free(file->names);
  *file = (wlmi_suite_file){0};
}

wlm_status wlmi_suite_input(const char *data, const char *input, char path[WLMI_INPUT_PATH]) {
  snprintf(path, WLMI_INPUT_PATH, "%s", input);
  if (strlen(input) >= WLMI_INPUT_PATH) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%.64s...: too long", input);
  struct stat info;
  if (!strcmp(input, "-") || strchr(input, ':') || has_ending(input, ".mtx") || has_ending(input, ".mtx.gz") ||
      (!stat(input, &info) && !S_ISDIR(info.st_mode)))
    return WLM_OK;
  if (!data) return wlmi_fail(WLM_ERR_NOT_FOUND, "%s is a file of the data set: say where that is, --data DIR", input);
  static const char *const places[] = {"%s/%s.mtx.gz", "%s/%s/%s.mtx.gz"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (snprintf(path, WLMI_INPUT_PATH, places[i], data, input, input) < WLMI_INPUT_PATH && access(path, R_OK) == 0)
      return WLM_OK;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "neither %s/%s.mtx.gz nor %s/%s/%s.mtx.gz can be read", data, input, data, input,
                   input);
}

/* ---- groups ---- */

/* Lines are "PREFIX<tab>GROUP"; "#" begins a comment. */
void wlmi_group_of(const char *matrix, char group[WLMI_GROUP_NAME]) {
  const struct wlmi_archive_file *file = find_file("groups", ".tsv");
  snprintf(group, WLMI_GROUP_NAME, "%s", matrix);
  for (const char *line = file ? file->begin : NULL; line && line < file->end;) {
    const char *end = memchr(line, '\n', (size_t)(file->end - line));
    if (!end) end = file->end;
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    if (*line != '#' && tab && !strncmp(matrix, line, (size_t)(tab - line))) {
      snprintf(group, WLMI_GROUP_NAME, "%.*s", (int)(end - tab - 1), tab + 1);
      return;
    }
    line = end + 1;
  }
}
