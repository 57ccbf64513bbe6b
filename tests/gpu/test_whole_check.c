/* One wrong element is found in any output of a large problem on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>

#include "support/gpu.h"
#include "support/require.h"
#include "support/whole_check.h"

static void one_wrong_element(void **state) {
  (void)state;
  test_gpu();
  test_needs_nvrtc();
  assert_int_equal(whole_check_begin("cuda"), 0);
  whole_check_finds_one_wrong_element();
  whole_check_guards_and_poison();
  whole_check_references_agree();
  whole_check_end();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_wrong_element)};
  return test_group(tests, NULL, test_gpu_close);
}
