/* kernels list and tools/same_kernels: kernels with another text and the same machine code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/command.h"

/* Points the environment to a copy of the templates in which the first `from` of prelude/host.h is replaced. */
static void use_templates(const char *name, const char *from, const char *to) {
  char line[1200], path[700];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  snprintf(line, sizeof line, "cp -r '%s/templates' '%s'", WLM_SOURCE_DIR, path);
  assert_int_equal(system(line), 0);
  setenv("WARPLOOM_TEMPLATES", path, 1);
  strcat(path, "/prelude/host.h");
  replace_in_file(path, from, to);
}

/* Lists the kernels into a file and gives its text; free(). */
static char *list_kernels(const char *name) {
  command c;
  command_expect(&c, &folder, 0, "kernels", "list", "--json");
  char *out = strdup(c.out);
  write_whole(folder_file(&folder, name), out, strlen(out));
  command_release(&c);
  return out;
}

static void expect_tool(const char *before, const char *now, const char *said) {
  char line[1600];
  snprintf(line, sizeof line, "cd '%s' && '%s/tools/same_kernels' %s %s list.inc > said", folder.path, WLM_SOURCE_DIR,
           before, now);
  assert_int_equal(system(line), 0);
  char *out = text_of(folder_file(&folder, "said"));
  assert_contains(out, said);
  free(out);
}

static void assert_list_is(const char *expected) {
  char *list = text_of(folder_file(&folder, "list.inc"));
  assert_string_equal(list, expected);
  free(list);
}

static void kernels_with_equal_code_are_listed(void **state) {
  (void)state;
  static const char head[] = "/* a list */\n";
  char expected[200];
  command c;
  command_expect(&c, &folder, 0, "tune", "synth:rows=2000,d=4,cv=0.5", "-n", "8", "--device", "host");
  command_release(&c);
  char *before = list_kernels("before");
  assert_json_at(before, "$.left_out", "0");
  assert_json_at(before, "$.kernels[0].measured", "1");
  char *variant = json_at(before, "$.kernels[0].variant");
  int count = 0;
  for (const char *at = before; (at = strstr(at, "\"variant\":")); at++) count++;
  write_whole(folder_file(&folder, "list.inc"), head, strlen(head));
  use_templates("templates_1", "schedule(dynamic)", "schedule(static)");
  free(list_kernels("another"));
  snprintf(expected, sizeof expected, "0 kernels have the same text, 0 another text and the same code, %d other",
           count);
  expect_tool("before", "another", expected);
  assert_list_is(head);
  use_templates("templates_2", "num_threads(threads)", "num_threads((threads))");
  char *renamed = list_kernels("renamed");
  snprintf(expected, sizeof expected, "0 kernels have the same text, %d another text and the same code, 0 other",
           count);
  expect_tool("before", "renamed", expected);
  char *list = text_of(folder_file(&folder, "list.inc"));
  char *old = json_at(before, "$.kernels[0].kernel"), *new = json_at(renamed, "$.kernels[0].kernel");
  snprintf(expected, sizeof expected, "{\"%.*s\", \"%s\", \"%s\"},\n", (int)strcspn(variant, "/"), variant, old, new);
  assert_contains(list, expected);
  assert_int_equal(count_lines(list, "\"},"), count);
  expect_tool("renamed", "before", "0 kernels have the same text"); /* the change is taken back */
  assert_list_is(head);
  free(list);
  free(old);
  free(new);
  free(variant);
  free(before);
  free(renamed);
}

/* Measurements stay valid where only a comment changed, and not where a kernel did. */
static void tuning_skips_kernels_of_equal_text(void **state) {
  (void)state;
  static const char input[] = "synth:rows=1000,d=4,cv=0.5";
  char database[320];
  command c;
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  unsetenv("WARPLOOM_TEMPLATES");
  command_expect(&c, &folder, 0, "tune", input, "-n", "8", "--device", "host", "--db", database, "--json");
  const double count = json_number_at(c.out, "$.inputs[0].tuned[0].measured");
  assert_true(count > 2);
  command_release(&c);
  forget_noise(database);
  use_templates("templates_3", "/* Runs all blocks.", "/* Runs each block.\n */\n\n/*");
  command_expect(&c, &folder, 0, "tune", input, "-n", "8", "--device", "host", "--db", database, "--json");
  assert_true(json_number_at(c.out, "$.inputs[0].tuned[0].measured") == 0);
  assert_true(json_number_at(c.out, "$.inputs[0].tuned[0].known") == count);
  command_release(&c);
  use_templates("templates_4", "schedule(dynamic)", "schedule(static)");
  command_expect(&c, &folder, 0, "tune", input, "-n", "8", "--device", "host", "--db", database, "--json");
  assert_true(json_number_at(c.out, "$.inputs[0].tuned[0].measured") == count);
  command_release(&c);
  unsetenv("WARPLOOM_TEMPLATES");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_with_equal_code_are_listed),
                                     cmocka_unit_test(tuning_skips_kernels_of_equal_text)};
  return cmocka_run_group_tests(tests, home_begin, folder_end);
}
