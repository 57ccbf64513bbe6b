/* tests/mutations.tsv, which tools/mutate reads: each line names a test or a group of tests and a text that its file
 * has exactly once. A change of such a text has to update the list. */
#include <unistd.h>

#include "support/folder.h"
#include "support/test.h"

static char *text_of_file(const char *name) {
  char path[1000];
  size_t size;
  snprintf(path, sizeof path, "%s/%s", WLM_SOURCE_DIR, name);
  return access(path, R_OK) ? NULL : (char *)read_whole(path, &size);
}

static int occurrences(const char *text, const char *part) {
  int count = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) count++;
  return count;
}

/* "unit.test_x" is tests/unit/test_x.c; a name without a dot is a group of tools/mutate. */
static int has_test(const char *name) {
  char path[1000];
  const size_t label = strcspn(name, ".");
  if (!name[label]) return 1;
  const char *test = name + label + 1;
  snprintf(path, sizeof path, "%s/tests/%.*s/%.*s.c", WLM_SOURCE_DIR, (int)label, name, (int)strcspn(test, "."), test);
  return !access(path, R_OK);
}

TEST(lines_fit_their_files) {
  char *list = text_of_file("tests/mutations.tsv"), *rest = NULL;
  int number = 0, wrong = 0;
  assert_non_null(list);
  for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char *column[4] = {NULL}, *next = line;
    number++;
    for (int i = 0; i < 4; i++) column[i] = strsep(&next, "\t");
    if (!column[3] || next) fail_msg("tests/mutations.tsv:%d: must have four columns", number);
    char *text = text_of_file(column[1]);
    const int found = text ? occurrences(text, column[2]) : 0;
    if (found != 1)
      print_error("tests/mutations.tsv:%d: '%s' occurs %d times in %s\n", number, column[2], found, column[1]);
    if (!has_test(column[0])) print_error("tests/mutations.tsv:%d: there is no test %s\n", number, column[0]);
    wrong += found != 1 || !has_test(column[0]);
    free(text);
  }
  free(list);
  assert_true(number > 100);
  assert_int_equal(wrong, 0);
}
