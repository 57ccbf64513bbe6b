#include "runtime/shipped.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The file that this library is linked into, or NULL if it is not known. For a command that was found by PATH, dladdr
 * gives only the name. */
static const char *own_file(char command[PATH_MAX]) {
  Dl_info here;
  if (!dladdr((void *)wlmi_system_database_path, &here) || !here.dli_fname) return NULL;
  if (strchr(here.dli_fname, '/')) return here.dli_fname;
  const ssize_t size = readlink("/proc/self/exe", command, PATH_MAX - 1);
  if (size <= 0) return NULL;
  command[size] = 0;
  return command;
}

/* Looks relative to that file's folder: a build folder, bin or lib below a prefix, or Debian's lib/TRIPLET. */
static void find(const char *name, wlmi_text *path) {
  static const char *const places[] = {"", "/..", "/../.."};
  const size_t start = path->size;
  char command[PATH_MAX];
  const char *file = own_file(command), *slash = file ? strrchr(file, '/') : NULL;
  if (!slash) return;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    wlmi_text_append(path, file, (size_t)(slash - file));
    wlmi_text_printf(path, "%s/share/warploom/%s", places[i], name);
    if (path->failed || !access(path->data + start, R_OK)) return;
    path->data[path->size = start] = 0;
  }
}

void wlmi_system_database_path(wlmi_text *path) { find("system.db", path); }
void wlmi_archive_shipped_path(wlmi_text *path) { find("kernels.archive", path); }
