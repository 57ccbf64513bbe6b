/* The table of docs/operators.md agrees with the covering set, which tests/simt and tests/host execute.
 * WARPLOOM_UPDATE_GOLDEN=1 or the target operator-table rewrites it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/**/
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/emit_fixture.h"
#include "support/operator_table.h"

static const char page[] = WLM_SOURCE_DIR "/docs/operators.md";
static const char begin_mark[] =
    "<!-- operator table: made by `cmake --build build/release --target operator-table` -->\n";
static const char end_mark[] = "<!-- end of the operator table -->\n";

static void make_table(wlmi_text *table) {
  static const wlmi_limits *const devices[] = {&emit_cuda, &emit_host};
  covering sets[2];
  for (int i = 0; i < 2; i++) covering_get(emit_generator, devices[i], 0, &sets[i]);
  assert_status(WLM_OK, operator_table_write(emit_generator, sets, 2, table));
  for (int i = 0; i < 2; i++) covering_release(&sets[i]);
}

/* Reads docs/operators.md; *table and *after point to the begin and the end of its table. */
static char *read_page(char **table, char **after) {
  size_t size;
  char *read = (char *)read_whole(page, &size), *text = realloc(read, size + 1);
  assert_non_null(text);
  text[size] = 0;
  *table = strstr(text, begin_mark);
  *after = strstr(text, end_mark);
  if (!*table || !*after || *after < *table) fail_msg("%s has no place for the table: %s", page, begin_mark);
  *table += strlen(begin_mark);
  return text;
}

static void update(const char *text, const char *old, const char *after, const wlmi_text *table) {
  wlmi_text whole = {0};
  wlmi_text_append(&whole, text, (size_t)(old - text));
  wlmi_text_append(&whole, table->data, table->size);
  wlmi_text_puts(&whole, after);
  assert_false(whole.failed);
  write_whole(page, whole.data, whole.size);
  wlmi_text_release(&whole);
}

static void equals_the_covering_set(void **state) {
  (void)state;
  wlmi_text table = {0};
  char *old, *after, *text = read_page(&old, &after);
  make_table(&table);
  const int same = (size_t)(after - old) == table.size && !memcmp(old, table.data, table.size);
  if (!same && getenv("WARPLOOM_UPDATE_GOLDEN"))
    update(text, old, after, &table);
  else if (!same)
    print_error("docs/operators.md has\n%.*swhere tests show\n%s", (int)(after - old), old, table.data);
  free(text);
  wlmi_text_release(&table);
  if (!same && !getenv("WARPLOOM_UPDATE_GOLDEN"))
    fail_msg("the table in docs/operators.md is out of date: build the target operator-table and look at the diff");
}

/* ---- the columns of a row ----------------------------------------------------------------------------- */

static covering_entry entry_of(const char *variant) {
  covering_entry entry = {.spec = emit_spec(32)};
  snprintf(entry.variant, sizeof entry.variant, "%s", variant);
  return entry;
}

static void expect_row(const covering_entry *entries, int64_t count, const char *row) {
  const covering set = {.entries = (covering_entry *)entries, .count = count};
  wlmi_text table = {0};
  assert_status(WLM_OK, operator_table_write(emit_generator, &set, 1, &table));
  if (!strstr(table.data, row)) fail_msg("no row '%s' in\n%s", row, table.data);
  wlmi_text_release(&table);
}

static void rows_list_the_properties_of_entries(void **state) {
  (void)state;
  enum { ENTRIES = 8 };
  covering_entry e[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) e[i] = entry_of("row_crc/cf=1,rows=4");
  expect_row(e, 0, "| `row_crc` | cuda | none | - | - | - | - | - | - | - | - | - | - | - |\n");
  expect_row(e, 1, "| `row_crc` | cuda | none | mul | sum | - | f32 | - | - | - | - | - | - | - |\n");
  /* entries of row_crc add nothing to row_vec */
  expect_row(e, 1, "| `row_vec` | cuda | none | - | - | - | - | - | - | - | - | - | - | - |\n");
  for (int i = 0; i < ENTRIES; i++) e[i].spec.problem.message = (wlm_message)i;
  expect_row(e, ENTRIES, "| `row_crc` | cuda | none | all 8 | sum | - |");
  e[1].spec.problem.reduce = WLM_MAX;
  e[1].spec.problem.want_argmax = 1;
  e[2].spec.problem.heads = 4;
  e[3].spec.problem.transpose = 1;
  e[4].spec.problem.sampling.sample = WLM_SAMPLE_FASTRAND;
  e[5].spec.problem.operation = WLM_SDDMM;
  e[6].spec.problem.dense_type = WLM_F64;
  expect_row(
      e, ENTRIES,
      "| `row_crc` | cuda | none | all 8 | sum, max | - | f32, f64 | max | yes | yes | fastrand | yes | - | - |\n");
  const char *const customs[] = {"init=0;reduce=acc+x;combine=reduce;order=any", "init=0;reduce=acc+x;combine=reduce",
                                 "init=0;reduce=acc+x"};
  const char *const words[] = {"| order=any |", "| with combine |", "| all |"};
  for (int i = 0; i < 3; i++) {
    e[i].spec.problem.reduce = WLM_CUSTOM;
    snprintf(e[i].spec.custom, sizeof e[i].spec.custom, "%s", customs[i]);
    expect_row(e, i + 1, words[i]);
  }
}

static void messages_are_over_the_places_of_their_results(void **state) {
  (void)state;
  wlm_problem message = WLM_PROBLEM_INIT;
  covering_entry e = entry_of("row_vec/lanes=32,vector=1,batch=4");
  message.operation = WLM_MESSAGE;
  message.reduce = WLM_CUSTOM;
  message.custom = "sum=b";
  e.spec.problem = message;
  expect_row(&e, 1, "| `row_vec` | cuda | none | - | - | - | - | - | - | - | - | - | - | rows |\n");
  e.spec.problem.custom = "edge=b;max=b";
  expect_row(&e, 1, "| - | rows, edges |\n");
  e.spec.problem.transpose = 1;
  expect_row(&e, 1, "| - | columns, edges |\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_the_covering_set),
      cmocka_unit_test(rows_list_the_properties_of_entries),
      cmocka_unit_test(messages_are_over_the_places_of_their_results),
  };
  return cmocka_run_group_tests(tests, emit_begin, emit_end);
}
