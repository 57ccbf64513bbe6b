/* The covering set covers what its header promises, counted here independently. With the argument "normal" or "full"
 * only this set is checked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem/message.h"
#include "support/covering.h"
#include "support/emit_fixture.h"
#include "support/own.h"

static wlmi_generator *generator;
static covering sets[2]; /* [0] for CUDA, [1] for the host */

static int made(int failed) {
  print_message("%d cuda and %d host kernels\n", (int)sets[0].count, (int)sets[1].count);
  return failed;
}

static int get_normal(void **state) {
  (void)state;
  if (wlmi_generator_create(NULL, &generator) != WLM_OK) return 1;
  covering_get(generator, &emit_cuda, 0, &sets[0]);
  covering_get(generator, &emit_host, 0, &sets[1]);
  return made(0);
}

static int make_full(void **state) {
  (void)state;
  return made(wlmi_generator_create(NULL, &generator) != WLM_OK ||
              covering_make(generator, &emit_cuda, 1, 1, &sets[0]) != WLM_OK ||
              covering_make(generator, &emit_host, 1, 1, &sets[1]) != WLM_OK);
}

static int release_sets(void **state) {
  (void)state;
  covering_release(&sets[0]);
  covering_release(&sets[1]);
  wlmi_generator_destroy(generator);
  return 0;
}

/* Whether the entry is of this family or variant; NULL stands for any. */
static int is_of(const covering_entry *entry, const char *name) {
  size_t size = name ? strlen(name) : 0;
  if (!name) return 1;
  return !strncmp(entry->variant, name, size) && (entry->variant[size] == '/' || !entry->variant[size]);
}

/* Counts the entries of the family or variant, messages or all others, that pass the test. */
#define COUNT_OF(name, messages, test)                                                                  \
  __extension__({                                                                                       \
    int64_t found_ = 0;                                                                                 \
    for (int set_ = 0; set_ < 2; set_++)                                                                \
      for (int64_t i_ = 0; i_ < sets[set_].count; i_++) {                                               \
        const covering_entry *entry = &sets[set_].entries[i_];                                          \
        const wlm_problem *p = &entry->spec.problem;                                                    \
        found_ += is_of(entry, name) && (p->operation == WLM_MESSAGE) == messages && ((void)p, (test)); \
      }                                                                                                 \
    found_;                                                                                             \
  })
#define COUNT_ENTRIES(name, test) COUNT_OF(name, 0, test)

static int has_value(const covering_entry *entry, const char *value) {
  const char *at = strchr(entry->variant, '/');
  size_t size = strlen(value);
  while (at && *at++) {
    if (!strncmp(at, value, size) && (at[size] == ',' || !at[size])) return 1;
    at = strchr(at, ',');
  }
  return 0;
}

static void check_types(const char *name) {
  for (int i = 0; i < 2; i++) {
    assert_true(COUNT_ENTRIES(name, (int)entry->spec.rowptr_type == i) > 0);
    assert_true(COUNT_ENTRIES(name, entry->spec.has_values == i) > 0);
    assert_true(COUNT_ENTRIES(name, (int)p->empty == i) > 0);
  }
}

static void check_gradients(const char *family) {
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    if (!COUNT_ENTRIES(family, (int)p->message == message && p->operation == WLM_SDDMM))
      fail_msg("%s never with the gradient of %s", family, wlmi_message_name(message));
  for (int i = 0; i < 2; i++) {
    assert_true(COUNT_ENTRIES(family, (int)entry->spec.rowptr_type == i) > 0);
    assert_true(COUNT_ENTRIES(family, (int)entry->spec.colind_type == i) > 0);
    assert_true(COUNT_ENTRIES(family, entry->spec.has_values == i) > 0);
    for (int type = WLM_F32; type <= WLM_F64; type++)
      if (!COUNT_ENTRIES(family, p->reduce == (i ? WLM_MEAN : WLM_SUM) && (int)p->dense_type == type))
        fail_msg("%s never with %s of %s", family, i ? "mean" : "sum", wlmi_type_name((wlm_type)type));
  }
  for (int type = WLM_F32; type <= WLM_F64; type++)
    if (!COUNT_ENTRIES(family, (int)p->dense_type == type && p->heads > 1))
      fail_msg("%s never with heads in %s", family, wlmi_type_name((wlm_type)type));
}

static void check_transposed(const char *family) {
  check_types(family);
  for (int type = WLM_F32; type <= WLM_F64; type++) {
    const char *name = wlmi_type_name((wlm_type)type);
#define NEEDS(test, what)                                           \
  if (!COUNT_ENTRIES(family, (int)p->dense_type == type && (test))) \
  fail_msg("%s never with %s of %s", family, what, name)
    for (int message = WLM_MUL; message <= WLM_RDIV; message++)
      NEEDS((int)p->message == message, wlmi_message_name(message));
    for (int i = 0; i < 4; i++)
      NEEDS((int)entry->spec.rowptr_type == i / 2 && (int)entry->spec.colind_type == i % 2, "some pair of indices");
    for (int i = 0; i < 2; i++) {
      NEEDS((p->heads > 1) == i, i ? "heads" : "one head");
      NEEDS(p->epilogue.bias == i, i ? "a bias" : "no bias");
      NEEDS((p->epilogue.activation != NULL) == i, i ? "an activation" : "no activation");
    }
#undef NEEDS
  }
}

/* For one type of B and C: all properties that give a family another kernel. */
static void check_cells(const char *family, wlm_type type) {
  const int transposes = COUNT_ENTRIES(family, p->transpose) > 0;
  const char *name = wlmi_type_name(type);
#define NEEDS(test, ...) \
  if (!COUNT_ENTRIES(family, p->dense_type == type && (test))) fail_msg(__VA_ARGS__)
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    NEEDS((int)p->message == message, "%s never with %s of %s", family, wlmi_message_name(message), name);
  for (int reduce = WLM_SUM; reduce <= WLM_CUSTOM; reduce++)
    NEEDS((int)p->reduce == reduce, "%s never with %s of %s", family, wlmi_reduce_name(reduce), name);
  for (int i = 0; i < 4; i++)
    NEEDS((int)entry->spec.rowptr_type == i / 2 && (int)entry->spec.colind_type == i % 2,
          "%s never with rowptr %s, colind %s and %s", family, wlmi_index_name(i / 2), wlmi_index_name(i % 2), name);
  for (int i = 0; i < 2; i++)
    NEEDS(p->want_argmax && (int)p->argmax_type == i, "%s never with positions %s of %s", family, wlmi_index_name(i),
          name);
  NEEDS(p->heads > 1, "%s never with heads in %s", family, name);
  NEEDS(p->transpose || !transposes, "%s never with a transpose in %s", family, name);
#undef NEEDS
}

static void check_family(const char *family) {
  for (int reduce = WLM_MAX; reduce <= WLM_MIN; reduce++)
    for (int type = WLM_I32; type <= WLM_I64; type++)
      if (!COUNT_ENTRIES(family, (int)p->reduce == reduce && p->want_argmax && (int)p->argmax_type == type))
        fail_msg("%s never with positions of %s in %s", family, wlmi_reduce_name(reduce), wlmi_index_name(type));
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++)
      if (!COUNT_ENTRIES(family, (int)p->message == message && (int)p->reduce == reduce))
        fail_msg("%s never with op %s.%s", family, wlmi_message_name(message), wlmi_reduce_name(reduce));
  check_types(family);
  for (int type = WLM_F32; type <= WLM_F64; type++) check_cells(family, (wlm_type)type);
}

/* The family that serves sums of 16-bit types alone. */
static void check_halves(const char *family) {
  check_types(family);
  for (int type = WLM_F16; type <= WLM_BF16; type++) {
    const char *name = wlmi_type_name((wlm_type)type);
#define NEEDS(test, what)                                           \
  if (!COUNT_ENTRIES(family, (int)p->dense_type == type && (test))) \
  fail_msg("%s never with %s of %s", family, what, name)
    for (int i = 0; i < 2; i++) {
      NEEDS(p->message == (i ? WLM_COPY_B : WLM_MUL), i ? "copy_b" : "mul");
      NEEDS(p->reduce == (i ? WLM_MEAN : WLM_SUM), i ? "mean" : "sum");
    }
    for (int i = 0; i < 4; i++)
      NEEDS((int)entry->spec.rowptr_type == i / 2 && (int)entry->spec.colind_type == i % 2, "some pair of indices");
#undef NEEDS
  }
  if (!COUNT_ENTRIES(family, p->transpose)) fail_msg("%s never with a transpose", family);
  assert_int_equal(COUNT_ENTRIES(family, p->dense_type != WLM_F16 && p->dense_type != WLM_BF16), 0);
}

static int has_operand(const covering_entry *entry, wlm_place place, wlm_width width) {
  wlm_message_table table = WLM_MESSAGE_TABLE_INIT;
  int found = 0;
  assert_status(WLM_OK, wlm_message_describe(&entry->spec.problem, &table));
  for (int i = 0; i < table.operands; i++) found |= table.operand[i].place == place && table.operand[i].width == width;
  return found;
}

static int has_result(const covering_entry *entry, wlmi_result_kind kind) {
  int found = 0;
  HOLD(wlmi_message, message, wlmi_message_parse(entry->spec.custom, &message));
  for (int i = 0; i < message.results; i++) found |= message.result[i].kind == kind;
  return found;
}

/* A family that serves messages serves them all. */
static void check_messages(const char *family) {
#define NEEDS(test, ...) \
  if (!COUNT_OF(family, 1, test)) fail_msg(__VA_ARGS__)
  for (int type = WLM_F32; type <= WLM_F64; type++)
    for (int transpose = 0; transpose < 2; transpose++)
      NEEDS((int)p->dense_type == type && p->transpose == transpose, "%s never with a message of %s, transpose %d",
            family, wlmi_type_name((wlm_type)type), transpose);
  for (int type = WLM_I32; type <= WLM_I64; type++)
    NEEDS(p->want_argmax && (int)p->argmax_type == type, "%s never with positions %s of a message", family,
          wlmi_index_name((wlm_index)type));
  for (int place = WLM_PLACE_ROW; place <= WLM_PLACE_ALL; place++)
    for (int width = WLM_WIDTH_N; width <= WLM_WIDTH_ONE; width++)
      NEEDS(has_operand(entry, (wlm_place)place, (wlm_width)width), "%s never with an operand of place %d, width %d",
            family, place, width);
  NEEDS(has_operand(entry, WLM_PLACE_ROW, WLM_WIDTH_WINS), "%s never with positions as an operand", family);
  for (int width = WLM_WIDTH_BASE; width <= WLM_WIDTH_SCALE; width++)
    NEEDS(has_operand(entry, WLM_PLACE_ROW, (wlm_width)width), "%s never with the %s of a score", family,
          wlmi_width_names[width]);
  for (int kind = 0; kind < WLMI_RESULT_KINDS; kind++)
    for (int transpose = 0; transpose < 2; transpose++)
      NEEDS(has_result(entry, (wlmi_result_kind)kind) && p->transpose == transpose,
            "%s never with a message of the kind %s, transpose %d", family, wlmi_result_kind_names[kind], transpose);
#undef NEEDS
}

static void test_messages(void **state) {
  (void)state;
  static const char *const families[] = {"row_vec", "row_block", "merge_path", "host_row", "host_nnz", "row_sample"};
  enum { FAMILIES = sizeof families / sizeof *families };
  int64_t counted = 0;
  for (int i = 0; i < FAMILIES; i++) {
    if (strcmp(families[i], "row_sample")) check_messages(families[i]);
    counted += COUNT_OF(families[i], 1, 1);
  }
  for (int type = WLM_F32; type <= WLM_F64; type++)
    for (int host = 0; host < 2; host++)
      assert_true(COUNT_OF(host ? "host_row" : "row_sample", 1,
                           (int)p->dense_type == type && p->sampling.sample != WLM_SAMPLE_NONE) > 0);
  assert_int_equal(counted, COUNT_OF(NULL, 1, 1)); /* other families serve none */
}

/* Parses lines of `show --list`: "row_crc (cuda; ..." and "    cf = 1, 2, 4, 8". */
static void test_families_and_values(void **state) {
  (void)state;
  wlmi_text text = {0};
  char family[64] = "", parameter[64], value[128];
  int families = 0, values = 0, used;
  assert_status(WLM_OK, wlmi_generator_list(generator, &text));
  for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
    if (line[0] != ' ') {
      assert_int_equal(sscanf(line, "%63s (", family), 1);
      (strstr(line, "; sddmm;")        ? check_gradients
       : strstr(line, "; transposed;") ? check_transposed
       : !strcmp(family, "windows")    ? check_halves
                                       : check_family)(family);
      families++;
    } else if (sscanf(line, " %63[a-z0-9_] = %n", parameter, &used) == 1 && strstr(line, " = ")) {
      for (char *at = line + used; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 2 : NULL) {
        snprintf(value, sizeof value, "%s=%.*s", parameter, (int)strcspn(at, ","), at);
        if (!COUNT_ENTRIES(family, has_value(entry, value))) fail_msg("%s never with %s", family, value);
        values++;
      }
    }
  }
  wlmi_text_release(&text);
  assert_true(families >= 8);
  assert_true(values >= 20);
}

/* Every family, operation, type and kind of result of the set occurs in the sample, which is small. */
static void test_sample(void **state) {
  (void)state;
  int64_t sampled = 0;
  for (int set = 0; set < 2; set++)
    for (int64_t i = 0; i < sets[set].count; i++) {
      const covering_entry *of = &sets[set].entries[i];
      const wlm_problem *q = &of->spec.problem;
      char family[64];
      snprintf(family, sizeof family, "%.*s", (int)strcspn(of->variant, "/"), of->variant);
      sampled += of->in_sample;
      if (!COUNT_OF(family, (q->operation == WLM_MESSAGE),
                    entry->in_sample && p->operation == q->operation && p->transpose == q->transpose &&
                        p->want_argmax == q->want_argmax && (p->heads > 1) == (q->heads > 1)))
        fail_msg("the sample lacks a kind of %s", of->variant);
      if (!COUNT_OF(family, (q->operation == WLM_MESSAGE),
                    entry->in_sample && p->operation == q->operation && p->dense_type == q->dense_type))
        fail_msg("the sample lacks a type of %s", of->variant);
      if (COUNT_OF(family, (q->operation == WLM_MESSAGE),
                   entry->in_families && entry->in_sample && p->operation == q->operation) != 1)
        fail_msg("not one entry stands for the operation of %s", of->variant);
    }
  print_message("%d in the sample\n", (int)sampled);
  assert_true(sampled * 5 < sets[0].count + sets[1].count);
}

static const int64_t widths[] = {1, 2, 4, 7, 8, 16, 31, 32, 33, 64, 66, 100, 128, 256, 300};
enum { WIDTHS = sizeof widths / sizeof *widths };

static void test_pairs(void **state) {
  (void)state;
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++) {
#define OP ((int)p->message == message && (int)p->reduce == reduce)
      for (int i = 0; i < 2; i++) {
        assert_true(COUNT_ENTRIES(NULL, OP && (int)entry->spec.rowptr_type == i) > 0);
        assert_true(COUNT_ENTRIES(NULL, OP && entry->spec.has_values == i) > 0);
        assert_true(COUNT_ENTRIES(NULL, OP && (int)p->empty == i) > 0);
        assert_true(COUNT_ENTRIES(NULL, OP && (int)entry->spec.colind_type == i) > 0);
      }
      for (int type = WLM_F32; type <= WLM_F64; type++)
        assert_true(COUNT_ENTRIES(NULL, OP && (int)p->dense_type == type) > 0);
      for (int sample = WLM_SAMPLE_BUCKET; sample <= WLM_SAMPLE_FASTRAND_COPRIME; sample++)
        for (int norm = WLM_NORM_NONE; norm <= (reduce == WLM_SUM ? WLM_NORM_UNBIASED : WLM_NORM_NONE); norm++)
          for (int set = 0; set < 2; set++)
            assert_true(COUNT_ENTRIES(set ? "host_row" : "row_sample",
                                      OP && (int)p->sampling.sample == sample && (int)p->sampling.norm == norm) > 0);
#undef OP
    }
  for (int i = 0; i < WIDTHS; i++) assert_true(COUNT_ENTRIES(NULL, p->n == widths[i]) > 5);
  for (int type = WLM_F16; type <= WLM_BF16; type++)
    assert_true(COUNT_ENTRIES(NULL, (int)p->dense_type == type && entry->spec.value_type == WLM_F32) > 5);
}

/* ---- the full set ---------------------------------------------------------------------------------- */

static void check_variant(const char *variant, const wlm_problem *served) {
  for (int message = WLM_MUL; message <= WLM_RDIV; message++)
    if (!COUNT_ENTRIES(variant, (int)p->message == message))
      fail_msg("%s never with message %s", variant, wlmi_message_name(message));
  for (int reduce = WLM_SUM; reduce <= WLM_PROD; reduce++)
    if (!COUNT_ENTRIES(variant, (int)p->reduce == reduce))
      fail_msg("%s never with reduction %s", variant, wlmi_reduce_name(reduce));
  if (!COUNT_ENTRIES(variant, p->n == served->n)) fail_msg("%s never with N = %d", variant, (int)served->n);
  if (!COUNT_ENTRIES(variant,
                     p->sampling.sample == served->sampling.sample && p->sampling.norm == served->sampling.norm))
    fail_msg("%s never with sampling %d, norm %d", variant, (int)served->sampling.sample, (int)served->sampling.norm);
  if (!COUNT_ENTRIES(variant, p->sampling.width == served->sampling.width))
    fail_msg("%s never with S = %d", variant, (int)served->sampling.width);
  check_types(variant);
}

static int64_t check_variants_of(const wlmi_limits *limits, const wlmi_spec *spec) {
  OWN(wlmi_candidates, names, wlmi_generator_describe(generator, spec, limits, &names));
  int64_t count = names->count;
  for (int64_t i = 0; i < count; i++) check_variant(names->candidates[i].variant, &spec->problem);
  return count;
}

/* Every variant that serves mul.sum with one of these N and samplings has them in the full set. */
static void test_every_variant(void **state) {
  (void)state;
  static const int64_t samples[] = {8, 32, 100, 9, 577, 64, 2304};
  int64_t checked = 0;
  for (int i = 0; i < WIDTHS; i++)
    for (int set = 0; set < 2; set++) {
      const wlmi_limits *limits = set ? &emit_host : &emit_cuda;
      wlmi_spec spec = emit_spec(widths[i]);
      checked += check_variants_of(limits, &spec);
      for (int kind = 0; kind < 9; kind++) {
        spec.problem.sampling.sample = (wlm_sample)(WLM_SAMPLE_BUCKET + kind / 3);
        spec.problem.sampling.norm = (wlm_sample_norm)(kind % 3);
        spec.problem.sampling.width = samples[(i + kind) % 7];
        checked += check_variants_of(limits, &spec);
      }
    }
  assert_true(checked > 1000);
}

static void test_the_same_seed_gives_the_same_set(void **state) {
  (void)state;
  HOLD(covering, again, covering_make(generator, &emit_cuda, 1, 0, &again));
  assert_int_equal(again.count, sets[0].count);
  for (int64_t i = 0; i < again.count; i++) {
    char a[512], b[512];
    covering_describe(&again.entries[i], a, sizeof a);
    covering_describe(&sets[0].entries[i], b, sizeof b);
    assert_string_equal(a, b);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest normal_tests[] = {
      cmocka_unit_test(test_families_and_values),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_sample),
      cmocka_unit_test(test_the_same_seed_gives_the_same_set),
  };
  const struct CMUnitTest full_tests[] = {
      cmocka_unit_test(test_families_and_values),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_every_variant),
  };
  const char *only = argc > 1 ? argv[1] : "";
  int failures = 0;
  if (strcmp(only, "full"))
    failures += cmocka_run_group_tests_name("normal set", normal_tests, get_normal, release_sets);
  if (strcmp(only, "normal")) failures += cmocka_run_group_tests_name("full set", full_tests, make_full, release_sets);
  return failures;
}
