/* warploom tune without an INPUT: tunes the cells of the design one after another, over several commands. */
#include "support/command.h"
#include "support/test.h"

static int64_t integer_after(const char *json, const char *key) {
  const char *at = strstr(json, key);
  if (!at) fail_msg("no %s in %s", key, json);
  return strtoll(at + strlen(key), NULL, 10);
}

/* Even a budget of 1 ms measures one candidate. Repeating the command continues with the same cell, the candidates
 * that are likely best first, until half of them are measured. Then it goes to another cell; the other half comes
 * last. */
TEST(cells_are_tuned_one_after_another) {
  enum { RUNS = 40 };
  char database[320], first[256] = "", name[256];
  int64_t known = 0, first_n = 0;
  int run = 0;
  snprintf(database, sizeof database, "%s/design.db", folder.path);
  for (; run < RUNS && !known; run++) {
    command c = RUN(0, "tune", "--device", "host", "--db", database, "-n", "3,4,5,6,7,8", "--budget", "1ms", "--json");
    known = integer_after(c.out, "\"known\":");
    const int64_t cells = integer_after(c.out, "\"cells\":"), tuned = integer_after(c.out, "\"tuned\":");
    assert_int_equal(integer_after(c.out, "\"left\":"), cells - known - tuned);
    assert_in_range(known + tuned, 0, 1);
    assert_true(cells > 200);
    const char *matrix = strstr(c.out, "\"matrix\":\"synth:");
    assert_non_null(matrix);
    assert_int_equal(sscanf(matrix, "\"matrix\":\"%255[^\"]", name), 1);
    const int64_t n = integer_after(matrix, "\"n\":");
    assert_int_equal(integer_after(matrix, "\"measured\":"), 1);
    if (!run) {
      snprintf(first, sizeof first, "%s", name);
      first_n = n;
    }
    assert_int_equal(!strcmp(name, first) && n == first_n, !known);
    forget_noise(database);
  }
  assert_int_equal(known, 1);
  assert_true(run >= 3);
  assert_true(database_integer(database,
                               "SELECT count(*) FROM measurement JOIN matrix ON matrix.id = matrix WHERE name = ?1",
                               first) >= 3);
}

GROUP(home_begin, folder_end)
