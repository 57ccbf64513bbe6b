/* A program with more rights than its caller ignores warploom's environment variables: the command runs setuid as
 * another user. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/command.h"
#include "support/require.h"

static void environment_is_not_used(void **state) {
  (void)state;
  struct statvfs file_system;
  command c;
  char path[320];
  size_t size;
  if (geteuid()) test_missing("root", "root", "a program with the rights of another user was not tried");
  assert_int_equal(statvfs(folder.path, &file_system), 0);
  if (file_system.f_flag & ST_NOSUID) test_missing("setuid", "setuid", "the temporary folder is mounted nosuid");
  unsigned char *program = read_whole(WLM_COMMAND, &size);
  snprintf(path, sizeof path, "%s/warploom", folder.path);
  write_whole(path, program, size);
  free(program);
  assert_int_equal(chmod(path, 0755), 0);
  setenv("WARPLOOM_TEMPLATES", "/no/such/folder", 1);

  command_start(&c, &folder, (const char *const[]){path, "show", "--list", NULL});
  command_wait(&c);
  assert_int_equal(c.code, 1);
  assert_contains(c.err, "/no/such/folder");
  command_release(&c);

  assert_int_equal(chown(path, 65534, 65534), 0);
  assert_int_equal(chmod(path, 04755), 0);
  command_start(&c, &folder, (const char *const[]){path, "show", "--list", NULL});
  command_wait(&c);
  unsetenv("WARPLOOM_TEMPLATES");
  if (c.code) fail_msg("exit code %d: %s", c.code, c.err);
  assert_contains(c.out, "row_crc");
  command_release(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(environment_is_not_used)};
  return test_group(tests, home_begin, folder_end);
}
