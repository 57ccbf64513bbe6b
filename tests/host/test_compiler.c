/* The system's C compiler as the host device runs it: its version line, a limit of time, its folder. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runtime/host/compiler.h"
#include "support/folder.h"
#include "support/script.h"
#include "support/test.h"

static char line[512];
static int lines;

static void keep_line(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  lines++;
  snprintf(line, sizeof line, "%s", message);
}

static int begin(void **state) {
  folder_begin(state);
  setenv("D", folder.path, 1);
  lines = 0;
  wlm_set_log(keep_line, NULL, WLM_LOG_WARNING);
  return 0;
}

static int end(void **state) {
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  unsetenv("WARPLOOM_CC");
  unsetenv("WARPLOOM_CC_SECONDS");
  return folder_end(state);
}

/* Prints the version line and compares what describes the compiler, before its flags. */
static void assert_version(const char *printed, const char *expected) {
  char script[256], text[256];
  snprintf(script, sizeof script, "printf '%s\\n'", printed);
  setenv("WARPLOOM_CC", script_make(&folder, "cc", script), 1);
  assert_status(WLM_OK, wlmi_host_compiler_describe(text, sizeof text));
  assert_true(wlmi_is_utf8(text));
  assert_memory_equal(text, expected, strlen(expected));
  assert_memory_equal(text + strlen(expected), " -O3 ", 5);
}

TEST(version_lines_are_utf8) {
#define LONG "a version line of fifty-five bytes before the next one:"
  assert_int_equal(strlen(LONG), 55);
  assert_version("cc 1.0", "cc 1.0");
  assert_version(LONG "xy", LONG "x");
  assert_version(LONG "\303\244", LONG); /* a character of two bytes, of which only one has room */
  assert_version("cc \303\244 1", "cc \303\244 1");
  assert_version("cc \344 1", "cc ? 1"); /* Latin-1 */
  assert_version("cc\033[1m 1", "cc?[1m 1");
#undef LONG
}

/* A compiler that hangs is ended with the programs that it started, and not run again. */
TEST(a_compiler_that_hangs_is_ended) {
  WLM_FREED void *image = NULL;
  size_t size;
  char text[256];
  setenv("WARPLOOM_CC", script_make(&folder, "cc", "echo >> $D/runs; sleep 1000 & echo $! > $D/child; wait"), 1);
  setenv("WARPLOOM_CC_SECONDS", "1", 1);
  assert_status(WLM_OK, wlmi_host_compiler_describe(text, sizeof text));
  assert_string_equal(text, "");
  assert_int_equal(lines, 1);
  assert_contains(line, "more than 1 seconds", "WARPLOOM_CC_SECONDS");
  script_wait_for_end(&folder, "child");
  for (int i = 0; i < 3; i++) {
    assert_fails(WLM_ERR_NO_COMPILER, wlmi_host_compile("int x;", &image, &size), "not run again");
  }
  FREED unsigned char *runs = read_whole(folder_file(&folder, "runs"), &size);
  assert_int_equal(size, 1);
  setenv("WARPLOOM_CC", "cc", 1); /* another one is run */
  assert_status(WLM_OK, wlmi_host_compile("int x;", &image, &size));
}

/* Otherwise another user could exchange the files between the compiler and the assembler. */
TEST(its_temporary_files_are_in_the_private_folder) {
  void *image;
  size_t size;
  setenv("WARPLOOM_CC", script_make(&folder, "cc", "printf %s \"$TMPDIR\" > $D/where; stat -c %a $TMPDIR > $D/mode"),
         1);
  assert_status(WLM_ERR_IO, wlmi_host_compile("int x;", &image, &size)); /* it compiled nothing */
  FREED char *where = (char *)read_whole(folder_file(&folder, "where"), &size);
  assert_contains(where, "/warploom-run-");
  FREED char *mode = (char *)read_whole(folder_file(&folder, "mode"), &size);
  assert_string_equal(mode, "700\n");
}

EACH(begin, end)
