#include "support/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what, const char *path) {
  perror(path);
  fprintf(stderr, "the test cannot %s\n", what);
  abort();
}

void folder_make(test_folder *folder) {
  umask(022); /* a database that its group may write to is refused */
  const char *base = getenv("TMPDIR");
  snprintf(folder->path, sizeof folder->path, "%s/warploom-test-XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(folder->path)) die("make its folder", folder->path);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

void folder_remove(test_folder *folder) { nftw(folder->path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

const char *folder_file(test_folder *folder, const char *name) {
  snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, name);
  return folder->file;
}

test_folder folder;

const char *in_folder(const char *name) {
  static char **kept;
  static size_t count;
  kept = realloc(kept, (count + 1) * sizeof *kept);
  if (asprintf(&kept[count], "%s/%s", folder.path, name) < 0) abort();
  return kept[count++];
}

int folder_begin(void **state) {
  (void)state;
  folder_make(&folder);
  return 0;
}

int folder_begin_in_memory(void **state) {
  static const char memory[] = "/dev/shm";
  char *usual = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  if (!access(memory, W_OK)) setenv("TMPDIR", memory, 1);
  folder_begin(state);
  if (usual)
    setenv("TMPDIR", usual, 1);
  else
    unsetenv("TMPDIR");
  free(usual);
  return 0;
}

int folder_end(void **state) {
  (void)state;
  folder_remove(&folder);
  return 0;
}

unsigned char *read_whole(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) die("read", path);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *data = malloc(*size + 1);
  if (!data || fread(data, 1, *size, file) != *size) die("read", path);
  data[*size] = 0;
  fclose(file);
  return data;
}

void write_whole(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file)) die("write", path);
}
