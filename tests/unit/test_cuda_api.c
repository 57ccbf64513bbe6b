/* The library's own declarations of CUDA's driver API and of NVRTC are NVIDIA's. */
#include "runtime/cuda/api.h"
#include "support/test.h"
#include "unit/cuda_api_values.h"

#ifdef WLM_HAVE_NVIDIA_HEADERS
TEST(constants_and_layouts) {
  static const struct cuda_api_value own[] = CUDA_API_VALUES;
  assert_int_equal(sizeof own / sizeof *own, nvidia_value_count);
  for (int i = 0; i < nvidia_value_count; i++) {
    assert_string_equal(own[i].name, nvidia_values[i].name);
    if (own[i].value != nvidia_values[i].value)
      fail_msg("%s: %lld, but %lld in NVIDIA's headers", own[i].name, own[i].value, nvidia_values[i].value);
  }
}
#else
TEST(constants_and_layouts) {
  test_missing("nvrtc", "NVIDIA's headers", "the CUDA Toolkit was not found when this was configured");
}
#endif
