/* Public structs as the WLM_..._INIT macros make them, but for the fields that are given:
 *   wlm_problem problem = PROBLEM(.n = 8, .reduce = WLM_MAX); */
#pragma once

#include "warploom/warploom.h"

#pragma GCC diagnostic ignored "-Woverride-init" /* a field that is given may be among the defaults */

#define CONTEXT_OPTIONS(...) \
  { .size = sizeof(wlm_context_options), __VA_ARGS__ }
/* Without databases and kernel cache, but for those that are given. */
#define BARE_OPTIONS(...) CONTEXT_OPTIONS(.database = "", .system_database = "", .kernel_cache = "", __VA_ARGS__)
#define CSR(...) \
  { .size = sizeof(wlm_csr), __VA_ARGS__ }
#define COO(...) \
  { .size = sizeof(wlm_coo), __VA_ARGS__ }
#define PROBLEM(...) \
  { .size = sizeof(wlm_problem), .n = -1, .heads = 1, .batch = 1, .policy.expected_calls = 1, __VA_ARGS__ }
#define EXECUTE_ARGS(...) \
  { .size = sizeof(wlm_execute_args), .alpha = 1, __VA_ARGS__ }
#define ATTENTION_OPERANDS(...) \
  { .size = sizeof(wlm_attention_operands), .slope = 0.2, .scale = 1, __VA_ARGS__ }
#define MATRIX_OPTIONS(...) \
  { .size = sizeof(wlm_matrix_options), __VA_ARGS__ }
#define STATS(...) \
  { .size = sizeof(wlm_stats), __VA_ARGS__ }
#define TUNE_OPTIONS(...) \
  { .size = sizeof(wlm_tune_options), .min_sample_seconds = 0.001, .samples = 9, .seed = 1, __VA_ARGS__ }
#define ONLINE_OPTIONS(...)                                                                                  \
  {                                                                                                          \
    .size = sizeof(wlm_online_options), .share = 1.0 / 16, .slowdown = 0.02, .abandon = 2, .challengers = 4, \
    __VA_ARGS__                                                                                              \
  }

/* A wlmi_measurement_record of nine samples, of kernels of some version. */
#define MEASUREMENT(...)                                                                                \
  {                                                                                                     \
    .version = "00000000000000000000000000000001", .clock = "hot", .samples = 9, .calls_per_sample = 1, \
    .made_at = 1700000000, __VA_ARGS__                                                                  \
  }
