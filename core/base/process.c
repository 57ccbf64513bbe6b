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
#include <sys/syscall.h>
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

/* -1 would be every process of this user. */
static void kill_group(pid_t group) {
  if (group > 1) kill(-group, SIGKILL);
}

void wlmi_process_end_all(void) {
  atomic_store(&is_ending, 1);
  for (int i = 0; i < MOST_GROUPS; i++) kill_group(atomic_load(&groups[i]));
}

/* Returns the slot, or -1. A signal may have come between the start of the program and its entry. */
static int enter_group(pid_t group) {
  int slot = MOST_GROUPS - 1;
  for (int none = 0; slot >= 0 && !atomic_compare_exchange_strong(&groups[slot], &none, group); none = 0) slot--;
  if (atomic_load(&is_ending)) kill_group(group);
  return slot;
}

static void leave_group(int slot) {
  if (slot >= 0) atomic_store(&groups[slot], 0);
}

/* ---- starting ---- */

/* A program to start, prepared in advance: the child of start_waited_for may not allocate. */
typedef struct launch {
  char *const *argv, *const *variables;
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
} launch;

/* Starts it as the leader of a new process group. Returns 0, or else nothing has started. */
typedef int starter(launch *l, pid_t *child);

static int start_directly(launch *l, pid_t *child) {
  return posix_spawnp(child, l->argv[0], &l->files, &l->attributes, l->argv, l->variables);
}

enum { NOTHING_TO_RUN = 127 }; /* the exit status of posix_spawnp's child where there was nothing to execute */

/* In a child: runs the program in the child's process group and ends as the program does. */
static void stand_in(launch *l) {
  pid_t program;
  int state = 0;
  setpgid(0, 0);
  signal(SIGCHLD, SIG_DFL);
  posix_spawnattr_setpgroup(&l->attributes, getpid());
  if (start_directly(l, &program)) _exit(NOTHING_TO_RUN);
  while (waitpid(program, &state, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(state)) kill(getpid(), SIGKILL);
  _exit(WEXITSTATUS(state));
}

/* For a process that loses exit statuses, because it ignores SIGCHLD or waits for all of its children. A child without
 * a signal for its end escapes both, but executing a program would give it one; so the child waits for a grandchild. It
 * is a copy of this process, which makes it slow to start where much memory is in use. */
static int start_waited_for(launch *l, pid_t *child) {
  *child = (pid_t)syscall(SYS_clone, 0L, NULL, NULL, NULL, NULL);
  if (*child == 0) stand_in(l);
  if (*child > 0) setpgid(*child, *child); /* one of the two is first */
  return *child < 0;
}

static int add_files(launch *l, const char *output) {
  const int fails = posix_spawn_file_actions_addopen(&l->files, 0, "/dev/null", O_RDONLY, 0);
  if (fails || !output) return fails;
  return posix_spawn_file_actions_addopen(&l->files, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600) ||
         posix_spawn_file_actions_adddup2(&l->files, 1, 2);
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

static int start_in(const wlmi_process *process, char *const *variables, starter *start, pid_t *child) {
  launch l = {.argv = process->argv, .variables = variables};
  if (posix_spawn_file_actions_init(&l.files)) return WLMI_PROCESS_MISSING;
  int fails = posix_spawnattr_init(&l.attributes);
  if (!fails) {
    fails = posix_spawnattr_setflags(&l.attributes, POSIX_SPAWN_SETPGROUP) || add_files(&l, process->output) ||
            start(&l, child);
    posix_spawnattr_destroy(&l.attributes);
  }
  posix_spawn_file_actions_destroy(&l.files);
  return fails ? WLMI_PROCESS_MISSING : 0;
}

static int begin(const wlmi_process *process, starter *start, pid_t *child) {
  wlmi_text setting = {0};
  if (!process->temporary) return start_in(process, environ, start, child);
  wlmi_text_printf(&setting, "TMPDIR=%s", process->temporary);
  char **variables = setting.failed ? NULL : other_environment(setting.data);
  const int result = variables ? start_in(process, variables, start, child) : WLMI_PROCESS_NO_MEMORY;
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
    const int result = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
    if (result < 0 ? errno != EINTR : info.si_pid != 0) return 1;
    nanosleep(&pause, NULL);
    if (pause.tv_nsec < longest) pause.tv_nsec *= 2;
  }
  return 0;
}

static int run(const wlmi_process *process, starter *start) {
  pid_t child, waited;
  int state = 0;
  if (atomic_load(&is_ending)) return WLMI_PROCESS_KILLED;
  const int fails = begin(process, start, &child);
  if (fails) return fails;
  const int slot = enter_group(child);
  const int in_time = wait_for(child, process->seconds);
  if (!in_time) kill_group(child);
  leave_group(slot);
  while ((waited = waitpid(child, &state, __WALL)) < 0 && errno == EINTR)
    ;
  if (!in_time) return WLMI_PROCESS_TOO_LONG;
  if (waited < 0) return WLMI_PROCESS_LOST;
  if (!WIFEXITED(state)) return WLMI_PROCESS_KILLED;
  return WEXITSTATUS(state) == NOTHING_TO_RUN ? WLMI_PROCESS_MISSING : WEXITSTATUS(state);
}

static atomic_int loses_statuses; /* 1 once an exit status was lost */

int wlmi_process_run(const wlmi_process *process) {
  if (wlmi_process_is_privileged()) return WLMI_PROCESS_MISSING;
  int result = atomic_load(&loses_statuses) ? WLMI_PROCESS_LOST : run(process, start_directly);
  if (result == WLMI_PROCESS_LOST) {
    atomic_store(&loses_statuses, 1);
    result = run(process, start_waited_for);
  }
  return result;
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
