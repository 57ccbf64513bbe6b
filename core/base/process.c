#include "core/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int prepare(posix_spawn_file_actions_t *actions, int input, const char *output) {
  const int fails = input < 0 ? posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
                              : posix_spawn_file_actions_adddup2(actions, input, 0);
  if (fails || !output) return fails;
  return posix_spawn_file_actions_addopen(actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0600) ||
         posix_spawn_file_actions_adddup2(actions, 1, 2);
}

int wlmi_process_run(char *const argv[], int input, const char *output) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int result = -1, state = 0;
  if (posix_spawn_file_actions_init(&actions)) return -1;
  if (!prepare(&actions, input, output) && !posix_spawnp(&child, argv[0], &actions, NULL, argv, environ)) {
    /* If the program ignores SIGCHLD, the exit status is lost and counts as 0; callers also look at the child's output.
     */
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
      ;
    /* 127 is how posix_spawnp's child says that there was nothing to execute */
    result = WIFEXITED(state) && WEXITSTATUS(state) != 127 ? WEXITSTATUS(state) : WIFEXITED(state) ? -1 : 1;
  }
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

void wlmi_process_find(const char *name, wlmi_text *path) {
  const char *folders = getenv("PATH");
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
