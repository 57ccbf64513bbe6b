/* One wrong element is found in any output of a large problem, on the host device. */
#include "support/command.h"
#include "support/test.h"
#include "support/whole_check.h"

static int begin(void **state) { return home_begin(state) || whole_check_begin("host"); }

static int end(void **state) {
  whole_check_end();
  return folder_end(state);
}

TEST(without_a_second_reference) { whole_check_without_compiler(); }

TEST(one_wrong_element) { whole_check_finds_one_wrong_element(); }

TEST(guards_and_poison) { whole_check_guards_and_poison(); }

TEST(both_references_agree) { whole_check_references_agree(); }

TEST(simple_kernels_for_gpus) { whole_check_simple_kernels(); }

GROUP(begin, end)
