/* Compares parsed decimal numbers with the C library, mainly where the fast path is uncertain. */
#include "core/base/random.h"
#include "core/csr/lines.h"
#include "support/test.h"

static locale_t c_locale;

FIXTURE(open_locale) {
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return c_locale ? 0 : -1;
}

FIXTURE(close_locale) {
  freelocale(c_locale);
  return 0;
}

static void same_as_library(const char *text) {
  float got, expected = strtof_l(text, NULL, c_locale);
  const char *end = wlmi_parse_float(text, c_locale, &got);
  if (expected - expected != 0.0f && strpbrk(text, "0123456789")) { /* overflow to infinity */
    assert_null(end);
    return;
  }
  if (end != text + strlen(text) || memcmp(&got, &expected, sizeof got))
    fail_msg("%s: got %a, expected %a", text, (double)got, (double)expected);
}

static float random_float(wlmi_random *random) {
  uint32_t bits;
  float value;
  do {
    bits = (uint32_t)wlmi_random_next(random);
    memcpy(&value, &bits, sizeof value);
  } while (value - value != 0.0f);
  return value;
}

TEST(random_numbers) {
  static const char *const formats[] = {"%.9g", "%.6g", "%.17e", "%.15f", "%.3E", "%.25e"};
  wlmi_random random = wlmi_random_for(1, 0, 0);
  char text[400];
  for (int i = 0; i < 200000; i++) {
    double value = (double)random_float(&random);
    if (i % 2) value = (double)((int64_t)wlmi_random_next(&random) >> (i % 60)) / 1e12;
    snprintf(text, sizeof text, formats[i % 6], value);
    same_as_library(text);
  }
}

/* Numbers halfway between two floats, and just above and below. */
TEST(halfway_numbers) {
  wlmi_random random = wlmi_random_for(2, 0, 0);
  char text[400];
  for (int i = 0; i < 20000; i++) {
    float low = random_float(&random), high;
    uint32_t bits;
    memcpy(&bits, &low, sizeof bits);
    bits++;
    memcpy(&high, &bits, sizeof high);
    snprintf(text, sizeof text, "%.200e", ((double)low + (double)high) / 2);
    char *e = strchr(text, 'e');
    same_as_library(text);
    if (!e) continue;
    e[-1] = '1';
    same_as_library(text);
    snprintf(text, sizeof text, "%.16e", ((double)low + (double)high) / 2);
    same_as_library(text);
    snprintf(text, sizeof text, "%.18e", ((double)low + (double)high) / 2);
    same_as_library(text);
  }
}

TEST(forms) {
  static const char *const texts[] = {"0",
                                      "-0",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "-.5e1",
                                      "00012.500",
                                      "1e0",
                                      "1E+05",
                                      "1e-05",
                                      "1e38",
                                      "1e39",
                                      "-1e39",
                                      "1e-46",
                                      "1e-60",
                                      "1e9999",
                                      "1e-9999",
                                      "0e9999",
                                      "3.4028235e38",
                                      "3.4028236e38",
                                      "1.17549435e-38",
                                      "1.401298464324817e-45",
                                      "7.006e-46",
                                      "16777217",
                                      "16777219",
                                      "9007199254740993",
                                      "123456789012345678901234567890",
                                      "0.000000000000000000000000000000000000000000000000012345678901234567890e40",
                                      "1e22",
                                      "1e-22",
                                      "1e23",
                                      "5e-44",
                                      "99999999999999999999999999999999999999999e-10",
                                      "nan",
                                      "-nan",
                                      "NaN",
                                      "inf",
                                      "-Inf",
                                      "+INFINITY"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) same_as_library(texts[i]);
}

TEST(exponents_of_fortran) {
  static const struct {
    const char *text;
    float value;
  } cases[] = {{"1d0", 1},        {"-2D+00", -2}, {"1.5D+02", 150},
               {".25d-1", .025f}, {"1.", 1},      {"123456789012345678D-17", 1.2345679f}};
  float value;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *end = wlmi_parse_float(cases[i].text, c_locale, &value);
    if (end != cases[i].text + strlen(cases[i].text) || value != cases[i].value) fail_msg("%s", cases[i].text);
  }
  char text[200];
  memset(text, '1', sizeof text);
  strcpy(text + 150, "D-149"); /* more digits than the reader copies */
  assert_null(wlmi_parse_float(text, c_locale, &value));
}

TEST(not_numbers) {
  static const char *const texts[] = {"",  "-",  "+", ".",  "e5", "1e", "1e+", "--1",  "+-1",  "x",
                                      "i", "na", "-", "in", "d5", "1d", "1D+", "1d39", "1.0dx"};
  float value;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (wlmi_parse_float(texts[i], c_locale, &value)) fail_msg("'%s' was taken for a number", texts[i]);
}

TEST(ends_behind_the_number) {
  float value;
  const char *text = "12.5e1x";
  assert_ptr_equal(wlmi_parse_float(text, c_locale, &value), text + 6);
  assert_true(value == 125.0f);
  text = "0x10";
  assert_ptr_equal(wlmi_parse_float(text, c_locale, &value), text + 1);
}

TEST(integers) {
  int64_t value;
  const char *text = "-9223372036854775807 ";
  assert_ptr_equal(wlmi_parse_int64(text, &value), text + 20);
  assert_true(value == -INT64_MAX);
  assert_null(wlmi_parse_int64("9223372036854775808", &value));
  assert_null(wlmi_parse_int64("", &value));
  assert_null(wlmi_parse_int64("-", &value));
  assert_null(wlmi_parse_int64("a", &value));
  text = "+007.5";
  assert_ptr_equal(wlmi_parse_int64(text, &value), text + 4);
  assert_int_equal(value, 7);
}

GROUP(open_locale, close_locale)
