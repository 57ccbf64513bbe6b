#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>

#include "support/asserts.h"
#include "support/covering.h"
#include "support/covering_check.h"
#include "support/kernel_check.h"
#include "support/parallel.h"

typedef struct suite {
  const covering_check *check;
  wlmi_generator *generator;
  covering set;
} suite;

static void describe(void *user, int64_t k) {
  const suite *s = user;
  char text[512];
  covering_describe(&s->set.entries[test_shard_index(s->check->shard, k)], text, sizeof text);
  fprintf(stderr, "%s\n", text);
}

static int one(void *user, int64_t k) {
  const suite *s = user;
  const covering_check *c = s->check;
  const int64_t index = test_shard_index(c->shard, k);
  const covering_entry *entry = &s->set.entries[index];
  const kernel_check check = {c->device, &entry->spec, c->runs, c->before_run, c->user, (uint64_t)index + 1};
  wlmi_program program = {0};
  if (c->before_entry) c->before_entry(c->user, index, entry);
  wlm_status status =
      wlmi_generator_emit(s->generator, entry->variant, &entry->spec, &c->device->info.limits, &program);
  if (status == WLM_OK) status = kernel_check_program(&check, &program);
  wlmi_program_release(&program);
  if (status == WLM_OK) return 0;
  fprintf(stderr, "%s: ", wlm_error_detail());
  describe(user, k);
  return 1;
}

int64_t covering_check_all(const covering_check *check) {
  suite s = {.check = check};
  assert_status(WLM_OK, wlmi_generator_create(NULL, &s.generator));
  covering_get(s.generator, &check->device->info.limits, covering_full(), &s.set);
  const int64_t count = s.set.count, own = test_shard_count(check->shard, count);
  printf("%lld of %lld kernels\n", (long long)own, (long long)count);
  assert_true(count > 100);
  assert_int_equal(test_in_parallel(own, one, describe, &s), 0);
  covering_release(&s.set);
  wlmi_generator_destroy(s.generator);
  return count;
}
