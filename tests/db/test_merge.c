/* Merging, comparing and pruning stores: a merge is a union in any order, only pins conflict; diff lists differences;
 * prune deletes only measurements that no choice uses. */
#include <unistd.h>

#include "db/diff.h"
#include "db/interchange.h"
#include "support/db_fixture.h"
#include "support/test.h"

/* Makes a store of the samples begin .. end - 1 and returns its path. */
static const char *store_of(const char *name, int64_t begin, int64_t end) {
  const char *path = in_folder(name);
  put_samples_from(path, begin, end - begin);
  return path;
}

static wlmi_pin_record pin_of(const char *target, int64_t n, const char *variant) {
  return (wlmi_pin_record){"cuda/sm_90/NVIDIA H200/132", (char *)target, "p", n, (char *)variant};
}

static void pin_in(const char *path, const char *target, int64_t n, const char *variant) {
  const wlmi_pin_record pin = pin_of(target, n, variant);
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_pin(store, &pin));
}

static char *export_of_file(const char *path) {
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  return export_of(store);
}

static const char bucket[] = "v1 rows=9 mean=6 cv=1";

TEST(merging_is_a_union_and_lists_conflicts) {
  const char *a = store_of("a.db", 0, 30), *b = store_of("b.db", 20, 50);
  const char *both = store_of("both.db", 0, 50);
  const char *ab = in_folder("ab.db"), *ba = in_folder("ba.db");
  HELD(wlmi_text) conflicts = {0};
  pin_in(a, bucket, 32, "x");
  pin_in(b, bucket, 32, "x"); /* equal pins are no conflict */
  pin_in(both, bucket, 32, "x");
  GET(int64_t, measurements, wlmi_store_merge_files((const char *[]){a, b}, 2, ab, &conflicts, &measurements));
  assert_int_equal(measurements, 50);
  assert_int_equal(conflicts.size, 0);
  assert_status(WLM_OK, wlmi_store_merge_files((const char *[]){b, a}, 2, ba, &conflicts, &measurements));
  WLM_FREED char *left = export_of_file(ab), *right = export_of_file(ba), *expected = export_of_file(both);
  assert_string_equal(left, expected);
  assert_string_equal(right, expected);
  assert_contains(expected, "\n{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"cuda/sm_90/NVIDIA H200/132\",");

  pin_in(a, bucket, 64, "x");
  pin_in(b, bucket, 64, "y");
  assert_status(WLM_ERR_INVALID_ARGUMENT,
                wlmi_store_merge_files((const char *[]){b, a}, 2, ba, &conflicts, &measurements));
  unlink(ba);
  assert_status(WLM_OK, wlmi_store_merge_files((const char *[]){b, a}, 2, ba, &conflicts, &measurements));
  assert_string_equal(conflicts.data,
                      "pin of v1 rows=9 mean=6 cv=1, p, n = 64 on cuda/sm_90/NVIDIA H200/132: y is "
                      "kept, x is not\n");
}

static void put_model(const char *path, const char *device_class, const char *data) {
  const wlmi_model_record record = {"m", 5, (void *)data, strlen(data)};
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put_model(store, device_class, &record));
}

static void assert_model(wlm_store *store, const char *device_class, const char *data) {
  wlmi_model_record *records;
  GET(int64_t, count, wlmi_store_load_models(store, device_class, &records, &count));
  assert_int_equal(count, 1);
  assert_int_equal(records[0].size, strlen(data));
  assert_memory_equal(records[0].data, data, strlen(data));
  wlmi_model_records_free(records, count);
}

/* An administrator who merges the shipped file with one of another device keeps the shipped models. */
TEST(the_first_models_stay) {
  const char *a = store_of("a.db", 0, 3), *b = store_of("b.db", 2, 5), *ab = in_folder("ab.db");
  put_model(a, "cuda/one", "first");
  put_model(b, "cuda/one", "second");
  put_model(b, "cuda/two", "third");
  GET(int64_t, measurements, wlmi_store_merge_files((const char *[]){a, b}, 2, ab, NULL, &measurements));
  OWN(wlm_store, store, wlmi_store_open(ab, WLMI_STORE_READ, &store));
  assert_model(store, "cuda/one", "first");
  assert_model(store, "cuda/two", "third");
}

TEST(unreadable_sources_create_no_file) {
  wlmi_text conflicts = {0};
  int64_t measurements;
  const char *a = store_of("a.db", 0, 3), *c = in_folder("c.db"), *missing = in_folder("missing.db");
  assert_status(WLM_ERR_NOT_FOUND,
                wlmi_store_merge_files((const char *[]){a, missing}, 2, c, &conflicts, &measurements));
  assert_int_not_equal(access(c, F_OK), 0);
}

/* Only the id shows that a value was changed, so import and merge must verify ids. */
TEST(changed_values_are_not_passed_on) {
  static const char *const changes[] = {
      "UPDATE measurement SET made_at = made_at + 1", "UPDATE matrix SET name = name || 'x'",
      "UPDATE device SET memory_bytes = 7",           "UPDATE variant SET name = 'x'",
      "DELETE FROM matrix WHERE rows = 1001",         "DELETE FROM variant",
  };
  const char *a = store_of("a.db", 0, 3), *c = in_folder("c.db");
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    HELD(wlmi_text) out = {0};
    int64_t measurements;
    const char *b = store_of("b.db", 0, 9);
    run_sql(b, changes[i]);
    if (wlmi_store_merge_files((const char *[]){a, b}, 2, c, NULL, &measurements) != WLM_ERR_DATABASE)
      fail_msg("merged after %s", changes[i]);
    assert_contains(wlm_error_detail(), "b.db: measurement");
    assert_int_not_equal(access(c, F_OK), 0);
    OWN(wlm_store, store, wlmi_store_open(b, WLMI_STORE_READ, &store));
    assert_status(WLM_ERR_DATABASE, wlmi_store_export(store, &out));
    unlink(b);
  }
}

/* A row with another id than that of its content, to which measurements refer, would be stored under that id. */
TEST(wrong_ids_of_parts_are_not_passed_on) {
  int64_t measurements;
  const char *a = store_of("a.db", 0, 3), *c = in_folder("c.db");
  run_sql(a,
          "PRAGMA foreign_keys = OFF; UPDATE variant SET id = replace(id, 'a', 'b');"
          "UPDATE measurement SET variant = replace(variant, 'a', 'b')");
  assert_status(WLM_ERR_DATABASE, wlmi_store_merge_files((const char *[]){a}, 1, c, NULL, &measurements));
  assert_contains(wlm_error_detail(), "a.db: measurement");
}

/* Rows that no measurement refers to are left behind; an empty database, and one that is given twice, add nothing. */
TEST(only_what_measurements_use_is_merged) {
  const char *a = store_of("a.db", 0, 9), *b = store_of("b.db", 0, 0), *c = in_folder("c.db");
  run_sql(a, "DELETE FROM measurement WHERE matrix = (SELECT id FROM matrix WHERE rows = 1001)");
  GET(int64_t, measurements, wlmi_store_merge_files((const char *[]){a, b, a}, 3, c, NULL, &measurements));
  GET(wlm_store *, store, wlmi_store_open(a, WLMI_STORE_READ, &store));
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  wlmi_store_close(store);
  assert_int_equal(measurements, counts.measurements);
  const int64_t matrices = counts.matrices;
  assert_status(WLM_OK, wlmi_store_open(c, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_store_count(store, &counts));
  wlmi_store_close(store);
  assert_int_equal(counts.measurements, measurements);
  assert_int_equal(counts.matrices, matrices - 1);
}

TEST(pins_are_exported_unchanged) {
  const char *a = store_of("a.db", 0, 9), *b = store_of("b.db", 0, 0);
  pin_in(a, "00000000000000110000000000000012", 32, "row_crc/cf=1,rows=4");
  pin_in(a, bucket, 128, "row \"quoted\"\\ \u00e9");
  pin_in(a, bucket, 32, "row_crc/cf=1,rows=4");
  WLM_FREED char *first = export_of_file(a);
  GET(wlm_store *, store, wlmi_store_open(b, WLMI_STORE_WRITE, &store));
  GET(int64_t, added, import_string(store, first, "first", &added));
  assert_int_equal(added, 9);
  wlmi_store_close(store);
  WLM_FREED char *second = export_of_file(b);
  assert_string_equal(first, second);
}

static char said[1024]; /* what was logged */

static void keep_line(void *user, wlm_log_level level, const char *message) {
  (void)user;
  (void)level;
  const size_t size = strlen(said);
  snprintf(said + size, sizeof said - size, "%s\n", message);
}

/* Of pins that contradict within one import the first stays, and the log names the other. */
TEST(contradicting_pins_of_one_import) {
  static const char lines[] =
      "{\"warploom\":\"tuned\",\"version\":1}\n"
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"x\"}\n"
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"y\"}\n"
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"x\"}\n";
  wlmi_pin_record *pins;
  OWN(wlm_store, store, wlmi_store_open(store_of("a.db", 0, 0), WLMI_STORE_WRITE, &store));
  *said = 0;
  wlm_set_log(keep_line, NULL, WLM_LOG_WARNING);
  assert_status(WLM_OK, import_string(store, lines, "pins", NULL));
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  assert_string_equal(said, "import: pin of v1 rows=9 mean=6 cv=1, p, n = 32 on c: x is kept, y is not\n");
  GET(int64_t, count, wlmi_store_load_pins(store, NULL, &pins, &count));
  assert_int_equal(count, 1);
  assert_string_equal(pins->variant, "x");
  wlmi_pins_free(pins, count);
}

TEST(wrong_pin_lines_are_refused) {
  static const char *const lines[] = {
      "{\"pin\":\"somewhere\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"v\"}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"\",\"problem\":\"p\",\"n\":32,\"variant\":\"v\"}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":-1,\"variant\":\"v\"}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":1.5,\"variant\":\"v\"}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"v\",\"note\":\"\"}",
      "{\"pin\":\"v1 rows=9 mean=6 cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"n\":33,\"variant\":\"v\"}",
      "{\"pin\":\"v1,rows=9,mean=6,cv=1\",\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"v\"}",
      "{\"pin\":7,\"class\":\"c\",\"problem\":\"p\",\"n\":32,\"variant\":\"v\"}",
  };
  OWN(wlm_store, store, wlmi_store_open(store_of("a.db", 0, 0), WLMI_STORE_WRITE, &store));
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char text[512];
    snprintf(text, sizeof text, "{\"warploom\":\"tuned\",\"version\":1}\n%s\n", lines[i]);
    if (import_string(store, text, "pins", NULL) != WLM_ERR_PARSE) fail_msg("taken: %s", lines[i]);
    assert_contains(wlm_error_detail(), "pins:2: ");
  }
}

static void load_content(const char *path, wlmi_content *content) {
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_content_load(store, content));
}

TEST(differences_are_listed) {
  const char *a = store_of("a.db", 0, 30), *b = store_of("b.db", 0, 30);
  wlmi_content left, right;
  load_content(a, &left);
  load_content(b, &right);
  HOLD(wlmi_diff, diff, wlmi_diff_make(&left, &right, &diff));
  assert_int_equal(diff.measurements.both, 30);
  assert_int_equal(diff.measurements.only_a + diff.measurements.only_b + diff.choice_count + diff.pin_count, 0);
  wlmi_diff_release(&diff);
  wlmi_content_release(&left);
  wlmi_content_release(&right);

  wlmi_measurement_record faster = sample_measurement(2), elsewhere = sample_measurement(3);
  faster.variant = "row_best";
  faster.time_ps = 1000;
  elsewhere.device.name = "NVIDIA H100";
  GET(wlm_store *, store, wlmi_store_open(b, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, &faster, 1));
  assert_status(WLM_OK, wlmi_store_put(store, &elsewhere, 1));
  wlmi_store_close(store);
  pin_in(a, bucket, 32, "x");
  pin_in(b, bucket, 32, "y");
  pin_in(b, bucket, 64, "y");
  load_content(a, &left);
  load_content(b, &right);
  assert_status(WLM_OK, wlmi_diff_make(&left, &right, &diff));
  assert_int_equal(diff.measurements.only_a, 0);
  assert_int_equal(diff.measurements.only_b, 2);
  assert_int_equal(diff.choice_count, 2);
  assert_string_equal(diff.choices[0].device_class, "cuda/sm_90/NVIDIA H200/132");
  assert_string_equal(diff.choices[0].b->candidates[0].variant, "row_best");
  assert_string_not_equal(diff.choices[0].a->candidates[0].variant, "row_best");
  assert_null(diff.choices[1].a);
  assert_int_equal(diff.pin_count, 2);
  assert_null(diff.pins[1].a);
  wlmi_content_release(&left);
  wlmi_content_release(&right);
}

/* Samples 0 to 39 are stored again with a newer source; pruning removes their older measurements. */
TEST(pruning_keeps_every_choice) {
  const char *a = store_of("a.db", 0, 60);
  HELD(wlmi_content) before, after;
  OWN(wlm_store, store, wlmi_store_open(a, WLMI_STORE_WRITE, &store));
  for (int64_t i = 0; i < 40; i++) {
    wlmi_measurement_record record = sample_measurement(i);
    record.version = "0123456789abcdef0123456789abcdef";
    record.made_at += 1000;
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  assert_status(WLM_OK, wlmi_content_load(store, &before));
  assert_int_equal(before.count, 100);
  GET(int64_t, removed, wlmi_store_prune(store, 0, &removed));
  assert_int_equal(removed, 40);
  assert_status(WLM_OK, wlmi_content_load(store, &after));
  HOLD(wlmi_diff, diff, wlmi_diff_make(&before, &after, &diff));
  assert_int_equal(diff.measurements.only_a, 40);
  assert_int_equal(diff.choice_count, 0);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_int_equal(counts.measurements, 60);
  assert_status(WLM_OK, wlmi_store_prune(store, 0, &removed));
  assert_int_equal(removed, 0);
  wlmi_text faults = {0};
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
}

/* A candidate of the one case that is stored and pruned. */
typedef struct pruned_candidate {
  int64_t time_ps, prepare_ps; /* time_ps = 0: it failed */
  int is_kept;
} pruned_candidate;

static void assert_pruned(const pruned_candidate *candidates, int count, int64_t keep) {
  const char *a = store_of("a.db", 0, 0);
  char names[32][32];
  int64_t removed, kept = 0;
  assert_true(count <= 32);
  OWN(wlm_store, store, wlmi_store_open(a, WLMI_STORE_WRITE, &store));
  for (int i = 0; i < count; i++) {
    wlmi_measurement_record record = sample_measurement(1);
    snprintf(names[i], sizeof names[i], "row_crc/cf=%d,rows=4", i + 1);
    record.variant = names[i];
    record.time_ps = candidates[i].time_ps;
    record.spread_ps = 0;
    record.prepare_ps = candidates[i].prepare_ps;
    record.failed = !record.time_ps;
    if (record.failed) record.reason = "does not run";
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
    kept += candidates[i].is_kept;
  }
  assert_status(WLM_OK, wlmi_store_prune(store, keep, &removed));
  assert_int_equal(removed, count - kept);
  HOLD(wlmi_content, content, wlmi_content_load(store, &content));
  assert_int_equal(content.count, kept);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_true(counts.variants == kept && counts.matrices == 1 && counts.devices == 1); /* no row without use */
  for (int i = 0; i < count; i++) {
    int is_there = 0;
    for (int64_t k = 0; k < content.count; k++) is_there |= !strcmp(content.records[k].variant, names[i]);
    if (is_there != candidates[i].is_kept) fail_msg("candidate %d is %s", i, is_there ? "there" : "gone");
  }
  assert_status(WLM_OK, wlmi_store_prune(store, keep, &removed));
  assert_int_equal(removed, 0);
}

/* The prepared ones cost the same to prepare, and one of them failed. */
TEST(pruning_keeps_the_fastest) {
  enum { CANDIDATES = 16, KEEP = 4 };
  pruned_candidate candidates[CANDIDATES];
  for (int i = 0; i < CANDIDATES; i++)
    candidates[i] = (pruned_candidate){1000000 + 100000 * i, i % 2 ? 0 : 5000, i < 2 * KEEP};
  candidates[4] = (pruned_candidate){0, 0, 0};
  candidates[8].is_kept = 1;
  assert_pruned(candidates, CANDIDATES, KEEP);
}

/* Of the prepared ones the first is best for a thousand calls or more, the last for fewer, and the one between them
 * never. The fastest unprepared ones fill up to eight. */
TEST(pruning_keeps_what_some_number_of_calls_chooses) {
  static const pruned_candidate candidates[] = {{2000, 0, 1},      {2010, 0, 1},      {2020, 0, 1},   {2030, 0, 1},
                                                {2040, 0, 1},      {2050, 0, 1},      {2060, 0, 0},   {2070, 0, 0},
                                                {1000, 500000, 1}, {1400, 250000, 0}, {1500, 1000, 1}};
  assert_pruned(candidates, sizeof candidates / sizeof *candidates, 1);
}

/* A case of fewer than eight candidates decides less when it has fewer still, so it keeps all, the failed ones too. */
TEST(pruning_keeps_a_thin_case_whole) {
  static const pruned_candidate candidates[] = {{2000, 0, 1},    {2010, 0, 1}, {1500, 1000, 1},
                                                {1600, 1000, 1}, {0, 0, 1},    {0, 0, 1}};
  assert_pruned(candidates, sizeof candidates / sizeof *candidates, 1);
}

static void assert_nearest(wlm_store *store, const char *arch, const char *name, int processors, const char *expected) {
  const wlmi_device_record device = {(char *)name, "cuda", (char *)arch, processors, 0};
  HELD(wlmi_text) nearest = {0};
  assert_status(WLM_OK, wlmi_store_nearest_class(store, &device, &nearest));
  assert_string_equal(nearest.data, expected);
}

/* A GPU without data takes those of another one, if possible of its name, then of its architecture. */
TEST(the_nearest_class_is_of_the_same_chip) {
  static const struct {
    char *name, *arch;
    int processors;
  } devices[] = {{"NVIDIA H200", "sm_90", 132}, {"NVIDIA H100 PCIe", "sm_90", 114}, {"NVIDIA A100", "sm_80", 108}};
  OWN(wlm_store, store, wlmi_store_open(store_of("a.db", 0, 0), WLMI_STORE_WRITE, &store));
  assert_nearest(store, "sm_90", "NVIDIA H200", 132, "");
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    wlmi_measurement_record record = sample_measurement((int64_t)i);
    record.device.name = devices[i].name;
    record.device.arch = devices[i].arch;
    record.device.processors = devices[i].processors;
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  /* never the class of the device itself */
  assert_nearest(store, "sm_90", "NVIDIA H200", 132, "cuda/sm_90/NVIDIA H100 PCIe/114");
  assert_nearest(store, "sm_90", "NVIDIA GH200", 132, "cuda/sm_90/NVIDIA H200/132");
  assert_nearest(store, "sm_90", "NVIDIA GH200", 116, "cuda/sm_90/NVIDIA H100 PCIe/114");
  /* a part of an H200, with fewer multiprocessors */
  assert_nearest(store, "sm_90", "NVIDIA H200", 114, "cuda/sm_90/NVIDIA H200/132");
  assert_nearest(store, "sm_90", "NVIDIA H200", 60, "cuda/sm_90/NVIDIA H200/132");
  assert_nearest(store, "sm_90", "NVIDIA H200", 30, "cuda/sm_90/NVIDIA H200/132");
  assert_nearest(store, "sm_90", "NVIDIA GH200", 16, "cuda/sm_90/NVIDIA H100 PCIe/114");
  assert_nearest(store, "sm_80", "NVIDIA A30", 56, "cuda/sm_80/NVIDIA A100/108");
  assert_nearest(store, "sm_100", "NVIDIA B200", 148, "cuda/sm_90/NVIDIA H200/132");
}

EACH(folder_begin, folder_end)
