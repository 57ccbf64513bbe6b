#include "support/test.h"

enum { MOST = 128 };
static struct CMUnitTest tests[MOST];
static int count;
static test_fixture *each[2], *group[2];

void test_add(struct CMUnitTest test) {
  if (count == MOST) abort();
  tests[count++] = test;
}

void test_set_each(test_fixture *setup, test_fixture *teardown) { each[0] = setup, each[1] = teardown; }
void test_set_group(test_fixture *setup, test_fixture *teardown) { group[0] = setup, group[1] = teardown; }

int test_run(void) { return test_run_shard((test_shard){0, 1}); }

int test_run_shard(test_shard shard) {
  struct CMUnitTest part[MOST];
  if (!count) {
    fprintf(stderr, "the program defines no test\n");
    return 1;
  }
  const int64_t own = test_shard_count(shard, count);
  for (int64_t k = 0; k < own; k++) {
    part[k] = tests[test_shard_index(shard, k)];
    if (part[k].setup_func || part[k].teardown_func) continue;
    part[k].setup_func = each[0], part[k].teardown_func = each[1];
  }
  const int failures = _cmocka_run_group_tests("tests", part, (size_t)own, group[0], group[1]);
  return test_exit_status(failures, (int)own);
}
