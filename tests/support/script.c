#include "support/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static char path[400];

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); }

const char *script_make(const test_folder *folder, const char *name, const char *text) {
  snprintf(path, sizeof path, "%s/%s", folder->path, name);
  FILE *file = fopen(path, "w");
  if (!file || fprintf(file, "#!/bin/sh\n%s\n", text) < 0 || fclose(file) || chmod(path, 0755)) abort();
  return path;
}

int script_wait_for_start(const test_folder *folder, const char *name) {
  char number[400];
  int process = 0;
  snprintf(number, sizeof number, "%s/%s", folder->path, name);
  for (int found = 0; !found; rest()) {
    FILE *file = fopen(number, "r");
    char after = 0;
    found = file && fscanf(file, "%d%c", &process, &after) == 2 && after == '\n';
    if (file) fclose(file);
  }
  return process;
}

/* A process that has ended may stay as a zombie until its new parent asks for it. */
static int has_ended(int process) {
  char state = 'Z';
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
  if (file) fclose(file);
  return state == 'Z' || state == 'X';
}

void script_wait_for_end(const test_folder *folder, const char *name) {
  const int process = script_wait_for_start(folder, name);
  while (!has_ended(process)) rest();
}
