/* A program with more rights than its caller ignores warploom's environment variables: the command runs setuid as
 * another user. Needs root. */
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "support/command.h"
#include "support/script.h"
#include "support/test.h"

static int is_nosuid;

static char path[320];

/* Copies the command, for the user nobody. */
static int begin(void **state) {
  struct statvfs file_system;
  size_t size;
  if (home_begin(state) || geteuid()) return 0;
  if (statvfs(folder.path, &file_system)) return -1;
  is_nosuid = file_system.f_flag & ST_NOSUID;
  FREED unsigned char *program = read_whole(WLM_COMMAND, &size);
  snprintf(path, sizeof path, "%s/warploom", folder.path);
  write_whole(path, program, size);
  return chmod(path, 0755);
}

static void set_owner(int is_privileged) {
  assert_int_equal(chown(path, is_privileged ? 65534 : 0, is_privileged ? 65534 : 0), 0);
  assert_int_equal(chmod(path, is_privileged ? 04755 : 0755), 0);
}

static void need_setuid(void) {
  if (geteuid()) test_missing("root", "root", "a program with the rights of another user was not tried");
  if (is_nosuid) test_missing("setuid", "setuid", "the temporary folder is mounted nosuid");
}

TEST(environment_is_not_used) {
  command c;
  need_setuid();
  set_owner(0);
  setenv("WARPLOOM_TEMPLATES", "/no/such/folder", 1);

  command_start(&c, &folder, (const char *const[]){path, "show", "--list", NULL});
  command_wait(&c);
  assert_int_equal(c.code, 1);
  assert_contains(c.err, "/no/such/folder");

  set_owner(1);
  command_start(&c, &folder, (const char *const[]){path, "show", "--list", NULL});
  command_wait(&c);
  unsetenv("WARPLOOM_TEMPLATES");
  if (c.code) fail_msg("exit code %d: %s", c.code, c.err);
  assert_contains(c.out, "row_crc");
}

/* Neither the compiler in the caller's PATH nor the one that WARPLOOM_CC names runs, nor any other. */
TEST(no_compiler_runs) {
  command c;
  FREED char *usual = strdup(getenv("PATH"));
  char others[600];
  need_setuid();
  setenv("D", folder.path, 1);
  snprintf(others, sizeof others, "%s:%s", folder.path, usual);
  const char *ran = in_folder("ran");
  script_make(&folder, "as", "id > $D/ran");
  setenv("WARPLOOM_CC", script_make(&folder, "cc", "id > $D/ran"), 1);
  setenv("COMPILER_PATH", folder.path, 1);
  setenv("PATH", others, 1);
  chmod(folder.path, 0777);
  for (int privileged = 1; privileged >= 0; privileged--) {
    set_owner(privileged);
    const char *const argv[] = {path, "run", "uniform:rows=100,d=4", "-n", "16", "--device", "host", "--db", "", NULL};
    command_start(&c, &folder, argv);
    command_wait(&c);
    if (!privileged) break; /* shows that the trap works */
    if (c.code) fail_msg("exit code %d: %s", c.code, c.err);
    assert_int_not_equal(access(ran, F_OK), 0);
    assert_contains(c.err, "built-in kernel only");
    assert_contains(c.out, "host_builtin");
  }
  assert_int_equal(access(ran, F_OK), 0);
  chmod(folder.path, 0700);
  setenv("PATH", usual, 1);
  unsetenv("COMPILER_PATH");
  unsetenv("WARPLOOM_CC");
}

GROUP(begin, folder_end)
