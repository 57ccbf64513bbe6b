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
#define assert_contains(text, part)                                                   \
  do {                                                                                \
    if (!strstr((text), (part))) fail_msg("\"%s\" is not in \"%s\"", (part), (text)); \
  } while (0)
/* Declares a variable that a call fills: GET(wlm_plan *, plan, wlm_plan_create(context, matrix, &problem, &plan)); */
#define GET(type, name, call) \
  type name;                  \
  assert_status(WLM_OK, call)
