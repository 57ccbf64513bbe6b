/* Numbers have a decimal point in every locale: in Matrix Market files, operators and exported lines. Runs in a locale
 * with a decimal comma: one that is installed, or else one that localedef makes in the test's folder. */
#include <locale.h>

#include "core/problem/expression.h"
#include "core/records/lines.h"
#include "core/synth/input.h"
#include "support/db_fixture.h"
#include "support/test.h"

static const char *name; /* of the locale; NULL = there is none */

static int has_comma(const char *candidate) {
  return setlocale(LC_ALL, candidate) && !strcmp(localeconv()->decimal_point, ",");
}

/* Needs no root, but the sources of locales (the package `locales` of Debian). */
static int make_german(void) {
  char command[800];
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >'%s/localedef.log' 2>&1",
           folder.path, folder.path);
  if (system(command)) return 0;
  setenv("LOCPATH", folder.path, 1);
  return has_comma("de_DE.UTF-8");
}

static int begin(void **state) {
  static const char *const installed[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "pl_PL.UTF-8"};
  folder_begin(state);
  for (size_t i = 0; i < sizeof installed / sizeof *installed && !name; i++)
    if (has_comma(installed[i])) name = installed[i];
  if (!name && make_german()) name = "de_DE.UTF-8";
  setlocale(LC_ALL, "C");
  return 0;
}

FIXTURE(enter) { return name && !setlocale(LC_ALL, name) ? -1 : 0; }

FIXTURE(leave) {
  setlocale(LC_ALL, "C");
  return 0;
}

static void needs_comma(void) {
  char text[8];
  if (!name) test_missing("locale", "locale with a decimal comma", "install the package locales, or a German locale");
  snprintf(text, sizeof text, "%.1f", 0.5);
  assert_string_equal(text, "0,5");
}

TEST(matrix_market_files) {
  static const char file[] =
      "%%MatrixMarket matrix coordinate real general\n"
      "1 2 2\n1 1 1.5\n1 2 1.00000005960464477540\n";
  needs_comma();
  const char *path = folder_file(&folder, "a.mtx");
  write_whole(path, file, sizeof file - 1);
  HOLD(wlmi_csr_host, csr, wlmi_input_read(path, &csr));
  assert_true(csr.values[0] == 1.5f && csr.values[1] == 0x1.000002p0f);
}

TEST(operators) {
  static const char half[] = "0.5*a";
  HELD(wlmi_text) text = {0};
  needs_comma();
  HOLD(wlmi_expression, e, wlmi_expression_parse("test", half, strlen(half), 1 << WLMI_OPERAND_A, &e));
  wlmi_expression_print(&e, WLMI_SPELL_FLOAT, &text);
  assert_string_equal(text.data, "0.5f*a");
}

TEST(exported_lines) {
  const wlmi_measurement_record record = sample_measurement(0);
  const wlmi_content written = {.records = (wlmi_measurement_record *)&record, .count = 1};
  HELD(wlmi_text) text = {0};
  needs_comma();
  assert_status(WLM_OK, wlmi_lines_write(&written, &text));
  assert_contains(text.data, "\"cv\":0.3333333333333333,\"top_share\":0.1,");
  HOLD(wlmi_content, read, wlmi_lines_read_string(text.data, "x", &read));
  assert_true(read.count == 1 && read.records->stats.cv == record.stats.cv);
  assert_true(read.records->max_rel_err == record.max_rel_err);
}

EACH(enter, leave)
GROUP(begin, folder_end)
