/* The tables of docs/operators.md agree with the covering set, which tests/simt and tests/host execute, with the arrays
 * of the operations (core/problem/operation.c), and with the summaries of families. WARPLOOM_UPDATE_GOLDEN=1 or the
 * target operator-table rewrites them. */
#include "core/problem/message.h"
#include "core/problem/operation.h"
#include "support/emit_fixture.h"
#include "support/operator_table.h"
#include "support/test.h"

static const char page[] = WLM_SOURCE_DIR "/docs/operators.md";

/* A table of the page, which stands between two marks. */
typedef struct page_table {
  const char *begin_mark, *end_mark;
  void (*make)(wlmi_text *table);
} page_table;

static void make_operators(wlmi_text *table) {
  static const wlmi_limits *const devices[] = {&emit_cuda, &emit_host};
  covering sets[2];
  for (int i = 0; i < 2; i++) covering_get(emit_generator, devices[i], 0, &sets[i]);
  assert_status(WLM_OK, operator_table_write(emit_generator, sets, 2, table));
  for (int i = 0; i < 2; i++) covering_release(&sets[i]);
}

static void put_array(const wlmi_builtin *of, const wlmi_array *array, wlmi_text *table) {
  static const char *const types[] = {"dense_type", "accumulator", "argmax_type"};
  static const char *const nulls[] = {"yes", "no", "without edges", "must be"};
  wlmi_text_printf(table, "| %s | `%s` | %s | %s | %s | %s | %s | %s | %s |\n", of->name, array->name,
                   array->is_output ? "written" : "read", wlmi_place_names[array->place],
                   wlmi_width_is_pair(array->width) ? "2 heads" : wlmi_width_names[array->width], types[array->element],
                   array->ld_name ? array->ld_name : "-", nulls[array->need], wlmi_condition_texts[array->condition]);
}

static void make_arrays(wlmi_text *table) {
  wlmi_text_puts(table,
                 "| operation | array | is | place | width | type | leading dimension | may be NULL | only with |\n"
                 "|---|---|---|---|---|---|---|---|---|\n");
  for (const wlmi_builtin *of = wlmi_builtins; of < wlmi_builtins + WLMI_BUILTINS; of++)
    for (int i = 0; i < of->count; i++) put_array(of, &of->arrays[i], table);
}

/* From lines of `show --list`: "row_crc (cuda; ..." and, behind it, "    a warp a row". */
static void make_ideas(wlmi_text *table) {
  char name[64] = "";
  HELD(wlmi_text) list = {0};
  assert_status(WLM_OK, wlmi_generator_list(emit_generator, &list));
  wlmi_text_puts(table, "| family | idea |\n|---|---|\n");
  for (char *line = strtok(list.data, "\n"); line; line = strtok(NULL, "\n")) {
    if (*line == ' ' && *name) wlmi_text_printf(table, "| `%s` | %s |\n", name, line + strspn(line, " "));
    if (*line == ' ' || sscanf(line, "%63[a-z0-9_]", name) != 1) *name = 0;
  }
}

#define MADE "made by `cmake --build build/release --target operator-table` -->\n"
static const page_table operators = {"<!-- operator table: " MADE, "<!-- end of the operator table -->\n",
                                     make_operators};
static const page_table arrays = {"<!-- array table: " MADE, "<!-- end of the array table -->\n", make_arrays};
static const page_table ideas = {"<!-- family table: " MADE, "<!-- end of the family table -->\n", make_ideas};

/* Reads docs/operators.md; *table and *after point to the begin and the end of its table. */
static char *read_page(const page_table *t, char **table, char **after) {
  size_t size;
  char *read = (char *)read_whole(page, &size), *text = realloc(read, size + 1);
  assert_non_null(text);
  text[size] = 0;
  *table = strstr(text, t->begin_mark);
  *after = strstr(text, t->end_mark);
  if (!*table || !*after || *after < *table) fail_msg("%s has no place for the table: %s", page, t->begin_mark);
  *table += strlen(t->begin_mark);
  return text;
}

static void update(const char *text, const char *old, const char *after, const wlmi_text *table) {
  HELD(wlmi_text) whole = {0};
  wlmi_text_append(&whole, text, (size_t)(old - text));
  wlmi_text_append(&whole, table->data, table->size);
  wlmi_text_puts(&whole, after);
  assert_false(whole.failed);
  write_whole(page, whole.data, whole.size);
}

static void page_has(const page_table *t) {
  wlmi_text table = {0};
  char *old, *after, *text = read_page(t, &old, &after);
  t->make(&table);
  const int same = (size_t)(after - old) == table.size && !memcmp(old, table.data, table.size);
  if (!same && getenv("WARPLOOM_UPDATE_GOLDEN"))
    update(text, old, after, &table);
  else if (!same)
    print_error("docs/operators.md has\n%.*swhere the code says\n%s", (int)(after - old), old, table.data);
  free(text);
  wlmi_text_release(&table);
  if (!same && !getenv("WARPLOOM_UPDATE_GOLDEN"))
    fail_msg("a table in docs/operators.md is out of date: build the target operator-table and look at the diff");
}

TEST(equals_the_covering_set) { page_has(&operators); }

TEST(equals_the_arrays_of_operations) { page_has(&arrays); }

TEST(equals_the_ideas_of_families) { page_has(&ideas); }

/* Each name is one field of a call, with one shape and one type of elements in all operations. */
TEST(a_name_means_one_thing) {
  const wlmi_array *all[64];
  int count = 0;
  for (const wlmi_builtin *of = wlmi_builtins; of < wlmi_builtins + WLMI_BUILTINS; of++)
    for (int i = 0; i < of->count && count < 64; i++) all[count++] = &of->arrays[i];
  assert_in_range(count, 30, 63);
  for (int i = 0; i < count; i++)
    for (int j = 0; j < i; j++) {
      const wlmi_array *a = all[i], *b = all[j];
      const int same_name = !strcmp(a->name, b->name), same_field = a->in == b->in && a->from == b->from;
      if (same_name != same_field) fail_msg("%s and %s", a->name, b->name);
      if (same_name && a->element != b->element) fail_msg("%s has two types of elements", a->name);
      if (same_name && (a->place != b->place || a->width != b->width)) fail_msg("%s has two shapes", a->name);
    }
}

/* ---- the columns of a row ----------------------------------------------------------------------------- */

static covering_entry entry_of(const char *variant) {
  covering_entry entry = {.spec = emit_spec(32)};
  snprintf(entry.variant, sizeof entry.variant, "%s", variant);
  return entry;
}

static void expect_row(const covering_entry *entries, int64_t count, const char *row) {
  const covering set = {.entries = (covering_entry *)entries, .count = count};
  HELD(wlmi_text) table = {0};
  assert_status(WLM_OK, operator_table_write(emit_generator, &set, 1, &table));
  if (!strstr(table.data, row)) fail_msg("no row '%s' in\n%s", row, table.data);
}

TEST(rows_list_the_properties_of_entries) {
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

TEST(messages_are_over_the_places_of_their_results) {
  covering_entry e = entry_of("row_vec/lanes=32,vector=1,batch=4");
  wlm_problem message = PROBLEM(.operation = WLM_MESSAGE, .reduce = WLM_CUSTOM, .custom = "sum=b");
  e.spec.problem = message;
  expect_row(&e, 1, "| `row_vec` | cuda | none | - | - | - | - | - | - | - | - | - | - | rows |\n");
  e.spec.problem.custom = "edge=b;max=b";
  expect_row(&e, 1, "| - | rows, edges |\n");
  e.spec.problem.transpose = 1;
  expect_row(&e, 1, "| - | columns, edges |\n");
}

GROUP(emit_begin, emit_end)
