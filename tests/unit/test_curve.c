/* Points and a line as text. */
#include "cli/curve.h"
#include "support/test.h"

static char *print(wlmi_curve curve) {
  wlmi_text text = {0};
  char *out = NULL;
  wlmi_curve_print(&curve, &text);
  assert_int_equal(wlmi_text_take(&text, &out), WLM_OK);
  return out;
}

static int64_t longest_line(const char *text) {
  int64_t longest = 0;
  for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
    longest = strcspn(line, "\n") > (size_t)longest ? (int64_t)strcspn(line, "\n") : longest;
  return longest;
}

TEST(it_is_as_wide_as_the_screen) {
  static const wlmi_curve_point point = {1, 1, '+', "all"};
  static const struct {
    int columns;
    int64_t longest;
  } cases[] = {{80, 79}, {60, 59}, {500, 110}, {1, 40}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WLM_FREED char *text = print((wlmi_curve){&point, 1, 1, 2, "ms", cases[i].columns});
    assert_int_equal(longest_line(text), cases[i].longest);
  }
}

/* The last of points at one place is seen, and no label covers another. */
TEST(points_at_one_place_and_labels_that_meet) {
  static const wlmi_curve_point points[] = {
      {10, 0, '+', "under"}, {10, 0, '*', "seen"}, {9.5, 0, '+', "left"}, {0.1, -1, '+', "low"}, {5, 9, '+', "high"},
  };
  WLM_FREED char *text = print((wlmi_curve){points, 5, 1, 3, "s", 50});
  assert_contains(text, "   3.00 |                    ^high\n", "   0.00 |                                 left+ *\n",
                  "  -1.00 | +low\n", "          0 s                                10 s\n");
}
