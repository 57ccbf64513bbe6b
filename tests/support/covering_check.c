#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/asserts.h"
#include "support/covering.h"
#include "support/covering_check.h"
#include "support/kernel_check.h"
#include "support/parallel.h"
#include "support/seed.h"

enum { REST_ONE_IN = 12 };

typedef struct suite {
  const covering_check *check;
  wlmi_generator *generator;
  covering set;
  int64_t *indices, count; /* of the part's entries in the set */
} suite;

covering_part covering_part_of(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "families")) return (covering_part){COVERING_FAMILIES, {0, 1}};
  if (argc == 2 && !strcmp(argv[1], "sample")) return (covering_part){COVERING_SAMPLE, {0, 1}};
  return (covering_part){argc == 1 ? COVERING_ALL : COVERING_REST, test_shard_of(argc, argv)};
}

static int is_chosen(covering_choice choice, const covering_entry *entry) {
  const covering_choice its = entry->in_families ? COVERING_FAMILIES
                              : entry->in_sample ? COVERING_SAMPLE
                                                 : COVERING_REST;
  char text[512];
  covering_describe(entry, text, sizeof text);
  return choice == COVERING_ALL || (choice == its && (its != COVERING_REST || test_is_drawn(text, REST_ONE_IN)));
}

static void choose(suite *s) {
  const covering_part *part = &s->check->part;
  int64_t chosen = 0;
  s->indices = calloc((size_t)s->set.count, sizeof *s->indices);
  assert_non_null(s->indices);
  for (int64_t i = 0; i < s->set.count; i++)
    if (is_chosen(part->choice, &s->set.entries[i])) s->indices[chosen++] = i;
  s->count = test_shard_count(part->shard, chosen);
  for (int64_t k = 0; k < s->count; k++) s->indices[k] = s->indices[test_shard_index(part->shard, k)];
}

static void describe(void *user, int64_t k) {
  const suite *s = user;
  char text[512];
  covering_describe(&s->set.entries[s->indices[k]], text, sizeof text);
  fprintf(stderr, "%s\n", text);
}

static int one(void *user, int64_t k) {
  const suite *s = user;
  const covering_check *c = s->check;
  const int64_t index = s->indices[k];
  const covering_entry *entry = &s->set.entries[index];
  wlmi_spec spec = entry->spec;
  spec.base = index % 3 == 1; /* which changes what is emitted, and no candidate */
  const kernel_check check = {c->device, &spec, c->runs, c->before_run, c->user, (uint64_t)index + 1};
  wlmi_program program = {0};
  if (c->before_entry) c->before_entry(c->user, index, entry);
  wlm_status status = wlmi_generator_emit(s->generator, entry->variant, &spec, &c->device->info.limits, &program);
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
  choose(&s);
  const int64_t count = s.set.count;
  printf("%lld of %lld kernels\n", (long long)s.count, (long long)count);
  assert_true(count > 100);
  assert_int_equal(test_in_parallel(s.count, one, describe, &s), 0);
  free(s.indices);
  covering_release(&s.set);
  wlmi_generator_destroy(s.generator);
  return count;
}
