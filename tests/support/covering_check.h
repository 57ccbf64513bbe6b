/* Runs the covering set, or a part of it, on a device that several processes use, and compares each entry with float64
 * by kernel_check. Include after cmocka. */
#ifndef WLM_TESTS_COVERING_CHECK_H
#define WLM_TESTS_COVERING_CHECK_H

#include "runtime/dispatch/device.h"
#include "support/covering.h"
#include "support/shard.h"

typedef struct covering_check {
  wlmi_device *device;
  int runs;                                                                     /* of each entry on the same operands */
  void (*before_entry)(void *user, int64_t index, const covering_entry *entry); /* may be NULL */
  void (*before_run)(void *user, int run);
  void *user;
  test_shard shard; /* the entries that it checks */
} covering_check;

/* Fails the running test where an entry fails; returns how many the whole set has. */
int64_t covering_check_all(const covering_check *check);

#endif
