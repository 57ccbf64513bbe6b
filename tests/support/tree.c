#include "support/tree.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

/* nftw gives its callback no user pointer. */
static const char *source_folder;
static void (*found_file)(const char *path);

static int visit(const char *path, const struct stat *info, int kind, struct FTW *where) {
  size_t size = strlen(path);
  (void)info, (void)where;
  if (kind == FTW_F && size > 2 && (!strcmp(path + size - 2, ".c") || !strcmp(path + size - 2, ".h")))
    found_file(path + strlen(source_folder) + 1);
  return 0;
}

void tree_each(const char *source, const char *folder, void (*found)(const char *path)) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", source, folder);
  source_folder = source;
  found_file = found;
  nftw(path, visit, 16, FTW_PHYS);
}
