/* Names with control characters in messages, logs and texts. */
#include "core/base/printable.h"
#include "core/base/text.h"
#include "support/test.h"

static const struct {
  const char *text, *line, *lines;
} cases[] = {
    {"", "", ""},
    {"plain.mtx", "plain.mtx", "plain.mtx"},
    {"a\x1b[31mb", "a\\x1b[31mb", "a\\x1b[31mb"},
    {"a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\\rd"},
    {"\x01\x7f\x08", "\\x01\\x7f\\x08", "\\x01\\x7f\\x08"},
    {"na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80",
     "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"a\xc2\x9b"
     "31m \xc2\xa0",
     "a\\u009b31m \xc2\xa0", "a\\u009b31m \xc2\xa0"}, /* C1; a no-break space */
    {"na\xefve.mtx", "na\\xefve.mtx", "na\\xefve.mtx"},
    {"\xe2\x82", "\\xe2\\x82", "\\xe2\\x82"},
    {"C:\\x1b", "C:\\x1b", "C:\\x1b"},
};

TEST(control_characters_become_escapes) {
  char shown[128];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int keep = 0; keep < 2; keep++) {
      const char *expected = keep ? cases[i].lines : cases[i].line;
      HELD(wlmi_text) text = {0};
      wlmi_printable(cases[i].text, keep, shown, sizeof shown);
      assert_string_equal(shown, expected);
      wlmi_text_printable(&text, cases[i].text, keep);
      assert_string_equal(text.data ? text.data : "", expected);
      wlmi_printable(expected, keep, shown, sizeof shown);
      assert_string_equal(shown, expected); /* once more changes nothing */
    }
  }
}

TEST(no_character_is_divided) {
  static const char text[] = "a\x1b\xe2\x82\xac\xc2\x9b.";
  static const char *const expected[] = {"",
                                         "a",
                                         "a",
                                         "a",
                                         "a",
                                         "a\\x1b",
                                         "a\\x1b",
                                         "a\\x1b",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac",
                                         "a\\x1b\xe2\x82\xac\\u009b",
                                         "a\\x1b\xe2\x82\xac\\u009b."};
  for (size_t size = 1; size <= 16; size++) {
    char shown[32];
    memset(shown, 'x', sizeof shown);
    wlmi_printable(text, 0, shown, size);
    assert_string_equal(shown, expected[size - 1]);
    assert_int_equal(shown[size], 'x');
  }
}

TEST(details_are_printable) {
  wlmi_fail(WLM_ERR_IO, "%s: %s", "a\x1b[2J\nb", "no");
  assert_string_equal(wlm_error_detail(), "a\\x1b[2J\\nb: no");
  wlmi_fail_in(WLM_ERR_IO, "%s", "\x07");
  assert_string_equal(wlm_error_detail(), "\\x07: a\\x1b[2J\\nb: no");
  wlmi_fail_in(WLM_ERR_COMPILE, "\n");
  assert_string_equal(wlm_error_detail(), "\\n: \\x07: a\\x1b[2J\\nb: no");
  wlmi_fail(WLM_ERR_IO, "%s!", wlm_error_detail()); /* of itself */
  assert_string_equal(wlm_error_detail(), "\\n: \\x07: a\\x1b[2J\\nb: no!");
  wlmi_fail(WLM_ERR_COMPILE, "kernel.c:1: error\n  x\x1b\n  ^");
  assert_string_equal(wlm_error_detail(), "kernel.c:1: error\n  x\\x1b\n  ^");
}

static char logged[256];

static void keep_log(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  snprintf(logged, sizeof logged, "%s", message);
}

TEST(logs_are_printable) {
  wlm_set_log(keep_log, NULL, WLM_LOG_WARNING);
  wlmi_log(WLM_LOG_WARNING, "%s: skipped", "a\x1b]0;b\n");
  assert_string_equal(logged, "a\\x1b]0;b\\n: skipped");
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
}
