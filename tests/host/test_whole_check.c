/* One wrong element is found in any output of a large problem, on the host device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>

#include "support/command.h"
#include "support/whole_check.h"

static int begin(void **state) { return home_begin(state) || whole_check_begin("host"); }

static int end(void **state) {
  whole_check_end();
  return folder_end(state);
}

static void without_a_second_reference(void **state) {
  (void)state;
  whole_check_without_compiler();
}

static void one_wrong_element(void **state) {
  (void)state;
  whole_check_finds_one_wrong_element();
}

static void guards_and_poison(void **state) {
  (void)state;
  whole_check_guards_and_poison();
}

static void both_references_agree(void **state) {
  (void)state;
  whole_check_references_agree();
}

static void simple_kernels_for_gpus(void **state) {
  (void)state;
  whole_check_simple_kernels();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_second_reference), cmocka_unit_test(one_wrong_element),
      cmocka_unit_test(guards_and_poison),          cmocka_unit_test(both_references_agree),
      cmocka_unit_test(simple_kernels_for_gpus),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
