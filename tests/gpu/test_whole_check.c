/* One wrong element is found in any output of a large problem on a GPU. */
#include "support/gpu.h"
#include "support/test.h"
#include "support/whole_check.h"

TEST(one_wrong_element) {
  test_gpu();
  test_needs_nvrtc();
  assert_int_equal(whole_check_begin("cuda"), 0);
  whole_check_finds_one_wrong_element();
  whole_check_guards_and_poison();
  whole_check_references_agree();
  whole_check_end();
}

GROUP(NULL, test_gpu_close)
