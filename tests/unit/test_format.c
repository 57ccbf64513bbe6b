/* All C files of the tree are formatted as .clang-format says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/require.h"
#include "support/tree.h"

static FILE *list;
static int files;

static void add_file(const char *path) {
  fprintf(list, "%s\n", path);
  files++;
}

static void tree_is_formatted(void **state) {
  (void)state;
  static const char *const folders[] = {"include", "core",  "generator", "select", "db",       "tools",
                                        "runtime", "tuner", "cli",       "bench",  "examples", "tests"};
  if (system("clang-format --version >/dev/null 2>&1"))
    test_missing("clang-format", "clang-format", "the format of the tree was not checked");
  /* xargs reads the list from its standard input and passes on the worst exit code. */
  assert_non_null(list = popen("cd '" WLM_SOURCE_DIR "' && xargs clang-format --dry-run -Werror", "w"));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], add_file);
  int status = pclose(list);
  print_message("%d files\n", files);
  assert_true(files > 100);
  if (status) fail_msg("files are not formatted: clang-format -i them");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tree_is_formatted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
