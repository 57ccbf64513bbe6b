/* Runs other programs without a shell and without standard input. Each runs in a process group of its own, which can be
 * ended as a whole. */
#pragma once

#include "core/base/text.h"

typedef struct wlmi_process {
  char *const *argv;     /* ended by NULL; argv[0] is looked for in PATH */
  const char *output;    /* the file for its stdout and stderr; NULL = those of this program */
  const char *temporary; /* its TMPDIR; NULL = that of this program */
  double seconds;        /* then it is killed; 0 = never */
} wlmi_process;

enum {
  WLMI_PROCESS_KILLED = -1,   /* by a signal, or by wlmi_process_end_all */
  WLMI_PROCESS_MISSING = -2,  /* it did not start */
  WLMI_PROCESS_TOO_LONG = -3, /* it took more than `seconds` */
  WLMI_PROCESS_NO_MEMORY = -4,
  WLMI_PROCESS_LOST = -5 /* it ended, but another part of this program took its exit status */
};

/* Runs a program and waits for its end. Returns its exit status, or one of the above. If this program ignores SIGCHLD
 * or waits for all of its children, the first exit status is lost: then the program is run once more, and this time, as
 * in all later calls, by a child that nothing else waits for. */
int wlmi_process_run(const wlmi_process *process);

/* Kills all programs that run, and lets no other start. May be called from a signal handler. */
void wlmi_process_end_all(void);

/* Appends the path of the file that wlmi_process_run would run for `name`. Appends nothing where PATH has none. */
void wlmi_process_find(const char *name, wlmi_text *path);

/* Whether this process has more rights than its caller, as a setuid program has. Then the caller's environment is not
 * obeyed, and wlmi_process_run starts nothing. */
int wlmi_process_is_privileged(void);
