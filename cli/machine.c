#include "cli/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number after `word` at the start of a line; -1 if there is none. */
static int64_t number_in(const char *path, const char *word) {
  char line[256];
  long long number = -1;
  FILE *file = fopen(path, "r");
  while (file && number < 0 && fgets(line, sizeof line, file))
    if (!strncmp(line, word, strlen(word)) && sscanf(line + strlen(word), " %lld", &number) != 1) number = -1;
  if (file) fclose(file);
  return number;
}

static int64_t least(int64_t a, int64_t b) { return b >= 0 && b < a ? b : a; }

/* The bytes that a group's limit leaves, if it has one; cached file pages count as free. */
static int64_t left_in_group(const char *folder, const char *limit_file, const char *usage_file,
                             const char *cached_word) {
  char path[512];
  snprintf(path, sizeof path, "%.400s/%s", folder, limit_file);
  const int64_t limit = number_in(path, "");
  snprintf(path, sizeof path, "%.400s/%s", folder, usage_file);
  const int64_t usage = number_in(path, "");
  snprintf(path, sizeof path, "%.400s/memory.stat", folder);
  const int64_t cached = number_in(path, cached_word);
  if (limit < 0 || usage < 0) return -1;
  const int64_t used = cached > 0 && cached < usage ? usage - cached : usage;
  return used < limit ? limit - used : 0;
}

static int64_t left_in_v1(const char *folder) {
  return left_in_group(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
}

static int64_t left_in_v2(const char *folder) {
  return left_in_group(folder, "memory.max", "memory.current", "inactive_file");
}

/* The limits of all groups above apply too. A container may see its own group as the root. */
static int64_t left_in_groups(int64_t left) {
  char line[512], folder[512];
  FILE *file = fopen("/proc/self/cgroup", "r");
  left = least(least(left, left_in_v1("/sys/fs/cgroup/memory")), left_in_v2("/sys/fs/cgroup"));
  while (file && fgets(line, sizeof line, file)) {
    char *path = line; /* of number:controllers:path */
    line[strcspn(line, "\n")] = 0;
    strsep(&path, ":");
    const char *controllers = strsep(&path, ":");
    const int is_v2 = controllers && !*controllers;
    if (!path || (!is_v2 && !strstr(controllers, "memory"))) continue;
    snprintf(folder, sizeof folder, "%s%.400s", is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", path);
    for (char *slash; (slash = strrchr(folder, '/')) && strlen(folder) > strlen("/sys/fs/cgroup/"); *slash = 0)
      left = least(left, is_v2 ? left_in_v2(folder) : left_in_v1(folder));
  }
  if (file) fclose(file);
  return left;
}

static int64_t left_of_address_space(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return -1;
  const int64_t used = number_in("/proc/self/statm", "") * sysconf(_SC_PAGESIZE);
  return used >= 0 && (rlim_t)used < limit.rlim_cur ? (int64_t)limit.rlim_cur - used : 0;
}

int64_t wlmi_machine_free_memory(void) {
  const int64_t available = number_in("/proc/meminfo", "MemAvailable:");
  int64_t left = available >= 0 ? available * 1024 : INT64_MAX;
  left = left_in_groups(left);
  return least(left, left_of_address_space());
}
