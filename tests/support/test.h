/* Tests that register themselves: a program is a file of TEST(name) { ... }, run in this order. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/asserts.h"
#include "support/defaults.h"
#include "support/own.h"
#include "support/require.h"
#include "support/shard.h"

typedef int test_fixture(void **state);
/* Defines a setup or a teardown, which returns 0. */
#define FIXTURE(name) static int name(__attribute__((unused)) void **state)

/* Defines a test. `state` is what the setup stored there. */
#define TEST(name) TEST_BETWEEN(name, NULL, NULL)
/* The same, between a setup and a teardown of its own. */
#define TEST_BETWEEN(name, setup, teardown)   \
  static void name(void **state);             \
  TEST_ROW(name, name, NULL, setup, teardown) \
  static void name(__attribute__((unused)) void **state)
/* Adds a test that calls `function`, whose *state is a pointer: a row of a table. */
#define TEST_WITH(name, function, pointer) TEST_ROW(name, function, pointer, NULL, NULL)
#define TEST_ROW(name, function, pointer, setup, teardown)                    \
  __attribute__((constructor)) static void add_##name(void) {                 \
    test_add((struct CMUnitTest){#name, function, setup, teardown, pointer}); \
  }
void test_add(struct CMUnitTest test);

/* Sets what runs before and after each test of the program that names nothing itself. */
#define EACH(setup, teardown) \
  __attribute__((constructor)) static void set_each(void) { test_set_each(setup, teardown); }
/* Sets what runs before the first test and after the last one. */
#define GROUP(setup, teardown) \
  __attribute__((constructor)) static void set_group(void) { test_set_group(setup, teardown); }
void test_set_each(test_fixture *setup, test_fixture *teardown);
void test_set_group(test_fixture *setup, test_fixture *teardown);

/* Runs the tests, which main does where a program has none of its own. Returns main's exit code: the number of
 * failures, or MISSING if every test ended in test_missing, so that ctest reports the program as skipped. */
int test_run(void);
/* The same for one part of them, where ctest runs the program as several tests. */
int test_run_shard(test_shard shard);
