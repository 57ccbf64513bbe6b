/* The libFuzzer driver: fuzz_warploom TARGET CORPUS [options of libFuzzer]. It writes the target's seeds into the
 * folder CORPUS first. Memory is bounded, so that a number that asks for too much is refused at once. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "fuzz/targets.h"
#include "support/folder.h"
#include "warploom/warploom.h"

/* All that one input frees stays in quarantine until the input is done; 256 MB, the default, would take new pages from
 * the system for nearly every allocation. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=4"; }

enum { MOST_BYTES = 512 << 10 }; /* of one allocation */

static const fuzz_target *target;
static const char *corpus;
static int seeds;

void fuzz_seed(const void *data, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/seed-%d", corpus, seeds++);
  write_whole(path, data, size);
}

void fuzz_fail(const char *condition) {
  fprintf(stderr, "fuzz target %s: does not hold: %s\n", target->name, condition);
  abort();
}

static void remove_folder(void) { folder_remove(&folder); }

static size_t most_bytes(void) { return target->most_bytes ? target->most_bytes : MOST_BYTES; }

static void *allocate(void *user, size_t size) {
  (void)user;
  return size > most_bytes() ? NULL : malloc(size);
}

static void *reallocate(void *user, void *old, size_t size) {
  (void)user;
  return size > most_bytes() ? NULL : realloc(old, size);
}

static void release(void *user, void *old) {
  (void)user;
  free(old);
}

static void drop_message(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level, (void)message;
}

/* Keeps the pages that the file has. */
static void replace_bytes(const char *path, const uint8_t *data, size_t size) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || write(file, data, size) != (ssize_t)size || ftruncate(file, (off_t)size) || close(file)) {
    perror(path);
    abort();
  }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  for (size_t i = 0; i<fuzz_target_count && * argc> 2; i++)
    if (!strcmp((*argv)[1], fuzz_targets[i].name)) target = &fuzz_targets[i];
  if (!target) {
    fprintf(stderr, "usage: fuzz_warploom TARGET CORPUS [options of libFuzzer]; targets are");
    for (size_t i = 0; i < fuzz_target_count; i++) fprintf(stderr, " %s", fuzz_targets[i].name);
    fprintf(stderr, "\n");
    exit(2);
  }
  corpus = (*argv)[2];
  mkdir(corpus, 0700);
  memmove(*argv + 1, *argv + 2, (size_t)(*argc - 1) * sizeof **argv); /* also moves the final NULL */
  --*argc;
  umask(077); /* databases that others may write are refused */
  folder_begin_in_memory(NULL);
  atexit(remove_folder);
  for (const char *const *seed = target->seeds; seed && *seed; seed++) fuzz_seed(*seed, strlen(*seed));
  if (target->make_seeds) target->make_seeds();
  wlm_set_allocator(&(wlm_allocator){allocate, reallocate, release, NULL});
  wlm_set_log(drop_message, NULL, WLM_LOG_WARNING);
  sqlite3_hard_heap_limit64(64 << 20);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *copy = malloc(size + 1); /* an exact copy, so that ASan sees a read behind the end */
  if (!copy) return 0;
  memcpy(copy, data, size);
  copy[size] = 0;
  const char *path = target->file ? folder_file(&folder, target->file) : NULL;
  if (path) replace_bytes(path, data, size);
  target->run(path, copy, size);
  free(copy);
  return 0;
}
