/* Compiled kernels that are not worth a measurement (tuner/compile_ahead.h). */
#include "support/test.h"
#include "tuner/compile_ahead.h"

/* NULL = no reason is expected */
static void expect(wlmi_kernel_facts facts, int spared, const char *reason) {
  HELD(wlmi_text) text = {0};
  wlmi_kernel_refusal(&facts, 512, spared, &text);
  if (!reason)
    assert_int_equal(text.size, 0);
  else if (!text.size || !strstr(text.data, reason))
    fail_msg("\"%s\" is not in \"%s\"", reason, text.size ? text.data : "");
}

TEST(kernels_are_refused_with_a_reason) {
  const wlmi_kernel_facts fine = {32, 0, 1024, 4}, few = {255, 64, 0, 1}, spilled = {255, 1000, 0, 1},
                          large = {168, 0, 230000, 0};
  for (int spared = 0; spared < 2; spared++) {
    expect(fine, spared, NULL);
    expect(few, spared, NULL);
    expect(large, spared, "512 threads of 168 registers, 230000 bytes of shared memory");
  }
  expect(spilled, 0, NULL); /* if all candidates spill, none is refused */
  expect(spilled, 1, "1000 bytes in memory that do not fit its 255 registers");
}
