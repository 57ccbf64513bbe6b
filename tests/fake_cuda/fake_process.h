/* Runs a test of cmocka in a process of its own, in which the fake driver is libcuda.so.1: the driver is opened once in
 * a process. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cuda/fake_cuda.h"
#include "support/child.h"
#include "support/test.h"
#include "warploom/warploom.h"

static fake_cuda *fake;

/* In the child: a check that fails says so and ends the process. */
#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, wlm_error_detail()); \
      _exit(1);                                                                        \
    }                                                                                  \
  } while (0)
#define DETAIL(text) CHECK(strstr(wlm_error_detail(), text))

/* The body must release everything that it made. */
static inline void in_a_process(void (*body)(void)) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    /* The loader finds a library that is there by its SONAME, so this one answers for the driver. */
    void *library = dlopen(WLM_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    fake = dlsym(library, FAKE_CUDA_STATE);
    CHECK(fake);
    body();
    CHECK(fake->without_context == 0 && fake->retained == 0 && fake->pushed == 0);
    CHECK(!fake->memories && !fake->pooled && !fake->pools && !fake->modules && !fake->streams && !fake->events &&
          !fake->graphs && !fake->graph_execs);
    child_exit(0);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
}

/* Defines a test whose body `around`, such as in_a_process, runs. */
#define TEST_IN(around, name)         \
  static void name(void);             \
  TEST(test_##name) { around(name); } \
  static void name(void)
