#include "core/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/memory.h"

extern char **environ;

int wlmi_process_is_privileged(void) { return getauxval(AT_SECURE) != 0; }

/* ---- programs that run ---- */

enum { MOST_GROUPS = 256 }; /* further ones are not ended by wlmi_process_end_all */

static atomic_int groups[MOST_GROUPS]; /* process groups; 0 = free */
static atomic_int is_ending;

void wlmi_process_end_all(void) {
  atomic_store(&is_ending, 1);
  for (int i = 0; i < MOST_GROUPS; i++) {
    const int group = atomic_load(&groups[i]);
    if (group) kill(-group, SIGKILL);
  }
}

/* Returns the slot, or -1. A signal may have come between the start of the program and its entry. */
static int enter_group(pid_t group) {
  int slot = MOST_GROUPS - 1;
  for (int none = 0; slot >= 0 && !atomic_compare_exchange_strong(&groups[slot], &none, group); none = 0) slot--;
  if (atomic_load(&is_ending)) kill(-group, SIGKILL);
  return slot;
}

static void leave_group(int slot) {
  if (slot >= 0) atomic_store(&groups[slot], 0);
}

/* ---- starting ---- */

static int prepare(posix_spawn_file_actions_t *actions, const wlmi_process *process) {
  const int fails = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (fails || !process->output) return fails;
  return posix_spawn_file_actions_addopen(actions, 1, process->output, O_WRONLY | O_CREAT | O_TRUNC, 0600) ||
         posix_spawn_file_actions_adddup2(actions, 1, 2);
}

/* A copy of the environment, which clearenv sets to NULL, with `setting`, a text TMPDIR=..., instead of the TMPDIR
 * there; wlmi_free. NULL without memory. */
static char **other_environment(char *setting) {
  size_t count = 0, kept = 0;
  while (environ && environ[count]) count++;
  char **list = wlmi_alloc_zero(count + 2, sizeof *list);
  if (!list) return NULL;
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "TMPDIR=", 7)) list[kept++] = environ[i];
  list[kept] = setting;
  return list;
}

static int start_in(const wlmi_process *process, char *const *variables, pid_t *child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t own_group;
  if (posix_spawn_file_actions_init(&actions)) return WLM_PROCESS_MISSING;
  int fails = posix_spawnattr_init(&own_group);
  if (!fails) {
    fails = posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP) || prepare(&actions, process) ||
            posix_spawnp(child, process->argv[0], &actions, &own_group, process->argv, variables);
    posix_spawnattr_destroy(&own_group);
  }
  posix_spawn_file_actions_destroy(&actions);
  return fails ? WLM_PROCESS_MISSING : 0;
}

static int start(const wlmi_process *process, pid_t *child) {
  wlmi_text setting = {0};
  if (!process->temporary) return start_in(process, environ, child);
  wlmi_text_printf(&setting, "TMPDIR=%s", process->temporary);
  char **variables = setting.failed ? NULL : other_environment(setting.data);
  const int result = variables ? start_in(process, variables, child) : WLM_PROCESS_NO_MEMORY;
  wlmi_free(variables);
  wlmi_text_release(&setting);
  return result;
}

/* ---- waiting ---- */

/* Waits until the program has ended, but does not release its number, which others could get. Returns 0 if it took too
 * long. */
static int wait_for(pid_t child, double seconds) {
  static const long longest = 10 * 1000 * 1000;
  const double end = seconds > 0 ? wlmi_seconds() + seconds : INFINITY;
  struct timespec pause = {.tv_nsec = 500 * 1000};
  siginfo_t info = {0};
  while (wlmi_seconds() < end) {
    const int result = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    if (result < 0 ? errno != EINTR : info.si_pid != 0) return 1;
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < longest) pause.tv_nsec *= 2;
  }
  return 0;
}

int wlmi_process_run(const wlmi_process *process) {
  pid_t child;
  int state = 0;
  if (wlmi_process_is_privileged()) return WLM_PROCESS_MISSING;
  if (atomic_load(&is_ending)) return WLM_PROCESS_KILLED;
  const int fails = start(process, &child);
  if (fails) return fails;
  const int slot = enter_group(child);
  const int in_time = wait_for(child, process->seconds);
  if (!in_time) kill(-child, SIGKILL);
  leave_group(slot);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR)
    ;
  if (!in_time) return WLM_PROCESS_TOO_LONG;
  if (!WIFEXITED(state)) return WLM_PROCESS_KILLED;
  /* 127 is how posix_spawnp's child says that there was nothing to execute */
  return WEXITSTATUS(state) == 127 ? WLM_PROCESS_MISSING : WEXITSTATUS(state);
}

void wlmi_process_find(const char *name, wlmi_text *path) {
  const char *folders = secure_getenv("PATH");
  if (strchr(name, '/')) {
    wlmi_text_puts(path, name);
    return;
  }
  if (!folders) folders = "/bin:/usr/bin"; /* the default of posix_spawnp */
  for (int last = 0; !last;) {
    wlmi_text candidate = {0};
    const size_t length = strcspn(folders, ":");
    wlmi_text_printf(&candidate, "%.*s/%s", length ? (int)length : 1, length ? folders : ".", name);
    const int found = candidate.failed || !access(candidate.data, X_OK);
    if (candidate.failed)
      path->failed = 1;
    else if (found)
      wlmi_text_puts(path, candidate.data);
    wlmi_text_release(&candidate);
    last = found || !folders[length];
    folders += length + 1;
  }
}
