/* Compilers as measurements name them: which are versions of one program, and which version is newer. */
#include "select/compiler.h"
#include "support/test.h"

static void assert_newer(const char *newer, const char *older) {
  if (!wlmi_compiler_same(newer, older)) fail_msg("'%s' and '%s' are two programs", newer, older);
  if (wlmi_compiler_compare(newer, older) <= 0 || wlmi_compiler_compare(older, newer) >= 0)
    fail_msg("'%s' is not newer than '%s'", newer, older);
}

TEST(versions_of_one_program) {
  assert_newer("nvrtc 12.10 --std=c++17", "nvrtc 12.9 --std=c++17");
  assert_newer("cc 13.2.0 -O3", "cc 12.2.0 -O3");
  assert_newer("cc (Debian 12.2.1-14) 12.2.1", "cc (Debian 12.2.0-14) 12.2.0");
  assert_newer("mycc (13.2.0)", "mycc (12.2.0)");
  assert_newer("Ubuntu clang version 15.0.7", "Ubuntu clang version 14.0.0-1ubuntu1.1");
}

TEST(digits_in_the_name_are_no_version) {
  assert_newer("x86_64-conda-linux-gnu-cc (Anaconda gcc) 13.2.0", "x86_64-conda-linux-gnu-cc (Anaconda gcc) 11.4.0");
  assert_newer("x86_64-conda-linux-gnu-cc 13.2", "x86_64-conda-linux-gnu-cc 11.4");
  assert_newer("gcc-12 (Ubuntu 12.3.1) 12.3.1", "gcc-12 (Ubuntu 12.3.0) 12.3.0");
  assert_newer("x86_64-linux-gnu-gcc-13 (Debian 13.2.0-1)", "x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14)");
}

TEST(other_programs) {
  assert_false(wlmi_compiler_same("clang 19.0", "nvrtc 12.9"));
  assert_false(wlmi_compiler_same("x86_64-conda-linux-gnu-cc 11.4", "x86_64-conda-linux-gnu-clang 11.4"));
  assert_false(wlmi_compiler_same("cc (Debian 12.2.0)", "cc (Ubuntu 12.2.0)"));
  assert_false(wlmi_compiler_same("cc 1.0", NULL));
}

TEST(the_same_version) {
  assert_true(wlmi_compiler_same(NULL, "") && !wlmi_compiler_compare(NULL, ""));
  assert_true(wlmi_compiler_same("nvrtc 13.0 -G", "nvrtc 13.0") &&
              !wlmi_compiler_compare("nvrtc 13.0 -G", "nvrtc 13.0"));
  assert_true(wlmi_compiler_same("cc", "cc") && !wlmi_compiler_compare("cc", "cc"));
  assert_true(wlmi_compiler_compare("cc 12.2.1", "cc 12.2") > 0);
}
