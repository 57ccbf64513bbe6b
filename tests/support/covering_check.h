/* Runs the covering set or a part of it in several processes that use one device, and compares each entry with
 * float64 by kernel_check. Include after cmocka. */
#pragma once

#include "runtime/dispatch/device.h"
#include "support/covering.h"
#include "support/shard.h"

/* Which entries a program checks: all, one of each family and operation, the others of the sample (covering_kinds.h),
 * or one part of those that the seed draws of the rest (support/seed.h). */
typedef enum { COVERING_ALL, COVERING_FAMILIES, COVERING_SAMPLE, COVERING_REST } covering_choice;

typedef struct covering_part {
  covering_choice choice;
  test_shard shard; /* of the chosen entries */
} covering_part;

/* Parses the program's argument: "families", "sample", "2/4" for the second of four parts of the rest, or none for all
 * entries. An invalid argument ends the program. */
covering_part covering_part_of(int argc, char **argv);

typedef struct covering_check {
  wlmi_device *device;
  /* runs of each entry on the same operands */
  int runs;
  void (*before_entry)(void *user, int64_t index, const covering_entry *entry); /* may be NULL */
  void (*before_run)(void *user, int run);
  void *user;
  covering_part part;
} covering_check;

/* Fails the running test if an entry fails; returns the number of entries in the whole set. */
int64_t covering_check_all(const covering_check *check);
