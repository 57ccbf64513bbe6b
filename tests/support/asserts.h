/* cmocka with the headers that it needs before it, and assertions that it lacks. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/**/
#include <cmocka.h>

#include "warploom/warploom.h"

#define assert_status(expected, call)                                                                        \
  do {                                                                                                       \
    wlm_status got_ = (call);                                                                                \
    if (got_ != (expected))                                                                                  \
      fail_msg("%s: got %s (%s), expected %s", #call, wlm_status_name(got_), wlm_error_detail(), #expected); \
  } while (0)
/* assert_contains(text, "a part", "another one") */
#define assert_contains(text, ...)                                                              \
  do {                                                                                          \
    const char *const parts_[] = {__VA_ARGS__};                                                 \
    for (size_t i_ = 0; i_ < sizeof parts_ / sizeof *parts_; i_++)                              \
      if (!strstr((text), parts_[i_])) fail_msg("\"%s\" is not in \"%s\"", parts_[i_], (text)); \
  } while (0)
/* The call fails with this status, and the detail has these parts: assert_fails(WLM_ERR_IO, call, "a part"); */
#define assert_fails(expected, call, ...)             \
  do {                                                \
    assert_status(expected, call);                    \
    assert_contains(wlm_error_detail(), __VA_ARGS__); \
  } while (0)
/* Declares a variable that a call fills: GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan)); */
#define GET(type, name, call) \
  type name;                  \
  assert_status(WLM_OK, call)
