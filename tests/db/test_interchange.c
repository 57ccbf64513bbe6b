/* Export and import: equal bytes, all or nothing, and a message with the line number for every kind of error in a line.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "core/records/lines.h"
#include "db/interchange.h"
#include "support/db_fixture.h"
#include "support/test.h"

static wlm_store *store, *other;

static wlm_store *open_new(const char *name) {
  GET(wlm_store *, opened, wlmi_store_open(folder_file(&folder, name), WLMI_STORE_WRITE, &opened));
  return opened;
}

static int setup(void **state) {
  folder_begin(state);
  store = open_new("a.db");
  other = open_new("b.db");
  return 0;
}

FIXTURE(teardown) {
  wlmi_store_close(store);
  wlmi_store_close(other);
  folder_remove(&folder);
  return 0;
}

static void fill(wlm_store *into, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    wlmi_measurement_record record = sample_measurement(i);
    assert_status(WLM_OK, wlmi_store_put(into, &record, 1));
  }
}

static wlm_status import_path(wlm_store *into, const char *path, int64_t *added) {
  HELD(wlmi_content) content;
  wlm_status status = wlmi_lines_read_path(path, &content);
  if (status == WLM_OK) status = wlmi_store_import(into, &content, added);
  return status;
}

static int64_t measurements_in(wlm_store *in) {
  GET(wlmi_store_counts, counts, wlmi_store_count(in, &counts));
  return counts.measurements;
}

TEST(export_of_import_is_the_export) {
  fill(store, 0, 70);
  WLM_FREED char *first = export_of(store);
  GET(int64_t, added, import_string(other, first, "string", &added));
  assert_int_equal(added, 70);
  WLM_FREED char *second = export_of(other);
  assert_string_equal(first, second);
  assert_status(WLM_OK, import_string(other, second, "string", &added));
  assert_int_equal(added, 0);
  wlmi_text faults = {0};
  assert_status(WLM_OK, wlmi_store_check(other, &faults));
}

TEST(lines_are_sorted_by_id) {
  fill(store, 0, 40);
  WLM_FREED char *text = export_of(store);
  char last[WLMI_HASH_HEX] = "";
  assert_memory_equal(text, "{\"warploom\":\"tuned\",\"version\":1}\n", 32);
  int lines = 0;
  for (char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1, lines++) {
    assert_memory_equal(line, "{\"id\":\"", 7);
    assert_true(strncmp(last, line + 7, 32) < 0);
    memcpy(last, line + 7, 32);
  }
  assert_int_equal(lines, 40);
}

/* Merging two stores in either order gives the same bytes. */
TEST(merging_commutes) {
  fill(store, 0, 30);
  fill(other, 20, 50);
  WLM_FREED char *a = export_of(store), *b = export_of(other);
  GET(int64_t, added, import_string(store, b, "b", &added));
  assert_int_equal(added, 20);
  assert_status(WLM_OK, import_string(other, a, "a", &added));
  assert_int_equal(added, 20);
  WLM_FREED char *ab = export_of(store), *ba = export_of(other);
  assert_string_equal(ab, ba);
}

TEST(files_and_paths) {
  fill(store, 0, 10);
  WLM_FREED char *text = export_of(store);
  const char *path = folder_file(&folder, "out.jsonl");
  size_t size;
  write_whole(path, "old content", 11);
  chmod(path, 0644);
  assert_status(WLM_OK, wlmi_store_export_path(store, path));
  FREED char *written = (char *)read_whole(path, &size);
  assert_string_equal(written, text);
  GET(int64_t, added, import_path(other, path, &added));
  assert_int_equal(added, 10);

  FILE *file = tmpfile();
  assert_status(WLM_OK, wlmi_store_export_file(other, file, "temporary"));
  rewind(file);
  HOLD(wlmi_content, content, wlmi_lines_read_file(file, "temporary", &content));
  assert_status(WLM_OK, wlmi_store_import(other, &content, &added));
  assert_int_equal(added, 0);
  fclose(file);

  assert_fails(WLM_ERR_NOT_FOUND, import_path(other, folder_file(&folder, "none"), &added), folder.file);
  assert_status(WLM_ERR_IO, import_path(other, folder.path, &added)); /* a folder */
  assert_status(WLM_ERR_IO, wlmi_store_export_path(store, folder_file(&folder, "no/such/folder.jsonl")));
  /* the message has the name that the caller passed */
  assert_contains(wlm_error_detail(), "no/such/folder.jsonl: cannot open for writing");
  /* the device file must not be replaced by a file */
  assert_status(WLM_OK, wlmi_store_export_path(store, "/dev/null"));
  struct stat info;
  assert_int_equal(0, stat("/dev/null", &info));
  assert_true(S_ISCHR(info.st_mode));
}

TEST(a_symbolic_link_stays_one) {
  const char *target = in_folder("target.jsonl");
  write_whole(target, "old", 3);
  assert_int_equal(0, symlink("target.jsonl", folder_file(&folder, "link.jsonl")));
  assert_status(WLM_OK, wlmi_store_export_path(store, folder.file));
  struct stat info;
  assert_int_equal(0, lstat(folder.file, &info));
  assert_true(S_ISLNK(info.st_mode));
  size_t size;
  FREED char *written = (char *)read_whole(target, &size);
  assert_string_equal(written, "{\"warploom\":\"tuned\",\"version\":1}\n");
}

TEST(a_failed_export_leaves_the_old_file) {
  FILE *full = fopen("/dev/full", "w");
  if (!full) skip();
  fill(store, 0, 10);
  assert_fails(WLM_ERR_IO, wlmi_store_export_file(store, full, "the full disk"), "the full disk: cannot write");
  fclose(full);
}

/* `text` with the first `from` replaced; free() it. */
static char *replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  if (!at) fail_msg("\"%s\" is not in the line", from);
  size_t before = (size_t)(at - text), size = strlen(text) - strlen(from) + strlen(to) + 1;
  char *result = malloc(size);
  snprintf(result, size, "%.*s%s%s", (int)before, text, to, at + strlen(from));
  return result;
}

TEST(malformed_lines_are_named) {
  static const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"time_ps\":1000000", "\"time_ps\":0", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":-1", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":1.5", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":1e6", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":\"1000000\"", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":null", "time_ps must be a positive integer"},
      {"\"time_ps\":1000000", "\"time_ps\":99999999999999999999", "not a JSON object: too big integer"},
      {"\"time_ps\":1000000", "\"time_ps\":NaN", "not a JSON object"},
      {"\"time_ps\":1000000", "\"time_ps\":0x10", "not a JSON object"},
      {"\"time_ps\":1000000,", "", "time_ps is missing"},
      {"\"time_ps\":1000000", "\"time_ps\":1000000,\"time_ps\":1000000", "not a JSON object: duplicate object key"},
      {"\"time_ps\":1000000", "\"time_ps\":1000001", "the line was changed after its export"},
      {"\"time_ps\":1000000", "\"time_ps\":1000000,\"color\":1", "unknown key color"},
      {"\"time_ps\":1000000", "\"time_ps\":1000000,\"$[\":1", "unknown key $["},
      {"\"samples\":9", "\"samples\":9,\"prepare_ps\":-1", "prepare_ps must be an integer of at least 0"},
      {"\"samples\":9", "\"samples\":9,\"prepare_ps\":null", "prepare_ps must be an integer of at least 0"},
      {"\"samples\":9", "\"samples\":4294967305", "samples must be an integer of at least 0"},
      {"\"samples\":9", "\"samples\":[9]", "samples must be"},
      {"\"device_processors\":132", "\"device_processors\":0", "device_processors must be a positive integer"},
      {"\"variant\":\"row_crc", "\"variant\":\"row_naive", "the line was changed after its export"},
      {"\"variant\":\"row_crc/cf=1,rows=1\"", "\"variant\":7", "variant must be a string that is not empty"},
      {"\"variant\":\"row_crc/cf=1,rows=1\"", "\"variant\":\"\"", "variant must be a string that is not empty"},
      {"\"failed\":false", "\"failed\":0", "failed must be true or false"},
      {"\"failed\":false", "\"failed\":true", "must be 0 where failed is true"},
      {"\"max_rel_err\":1.2345678901234566e-07", "\"max_rel_err\":null", "max_rel_err must be a number"},
      {"\"max_rel_err\":1.2345678901234566e-07", "\"max_rel_err\":1e999", "not a JSON object: real number overflow"},
      {"\"max_rel_err\":1.2345678901234566e-07", "\"max_rel_err\":-1", "max_rel_err must be a number"},
      {"\"max_rel_err\":1.2345678901234566e-07", "\"max_rel_err\":1.2345678901234567e-06", "changed after its export"},
      {"\"cv\":0.3333333333333333", "\"cv\":\"0.3\"", "cv must be a number of at least 0"},
      {"\"cv\":0.3333333333333333", "\"cv\":null", "cv must be a number of at least 0"},
      {"\"top_share\":0.1", "\"top_share\":1.01", "top_share must be a number from 0 to 1"},
      {"\"longest\":300", "\"longest\":7001", "longest must not be greater than nnz"},
      {"\"fingerprint\":\"0", "\"fingerprint\":\"G", "fingerprint must be 32 lower-case hexadecimal digits"},
      {"\"source_hash\":\"0", "\"source_hash\":\"", "source_hash must be 32 lower-case hexadecimal digits"},
      {"\"matrix_name\":\"matrix", "\"matrix_name\":\"\xff", "not a JSON object: unable to decode byte 0xff"},
      {"\"matrix_name\":\"matrix", "\"matrix_name\":\"\\ud800", "not a JSON object: invalid Unicode"},
      {"\"matrix_name\":\"matrix", "\"matrix_name\":\"\\u0000", "not a JSON object: \\u0000 is not allowed"},
      {"{\"id\":\"", "{\"id\":\"x", "id must be 32 lower-case hexadecimal digits"},
      {"{\"id\":\"", "{\"id\":null,\"ID\":\"", "id must be 32 lower-case hexadecimal digits"},
      {"{\"id\":", "{\"ID\":", "id is missing"},
      {"\"made_at\":1700000000", "\"made_at\":9223372036854775807", "made_at must be seconds since 1970"},
      {"\"clock\":\"hot\"", "\"clock\":\"lukewarm\"", "clock must be hot, cold, online or empty"},
      {"}", "", "not a JSON object"},
      {"}", "}}", "not a JSON object"},
      {"}", "} trailing", "not a JSON object"},
      {"{", "[", "not a JSON object"},
      {"{", "", "not a JSON object"},
  };
  wlmi_measurement_record record = sample_measurement(0);
  HELD(wlmi_text) line = {0};
  wlmi_measurement_line(&record, &line);
  fill(other, 1, 12);
  WLM_FREED char *good = export_of(other);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    FREED char *bad = replaced(line.data, cases[i].from, cases[i].to);
    HELD(wlmi_text) text = {0};
    wlmi_text_printf(&text, "%s%s\n%s\n", good, bad, line.data); /* header and 11 lines, the bad one, a good one */
    int64_t added = 5;
    wlm_status status = import_string(store, text.data, "set.jsonl", &added);
    if (status != WLM_ERR_PARSE || !strstr(wlm_error_detail(), cases[i].message) ||
        strncmp(wlm_error_detail(), "set.jsonl:13: ", 14))
      fail_msg("%s -> %s: %s, \"%s\"", cases[i].from, cases[i].to, wlm_status_name(status), wlm_error_detail());
    assert_int_equal(measurements_in(store), 0);
  }
}

static void keep_line(void *user, wlm_log_level level, const char *message) {
  (void)level;
  snprintf(user, 512, "%s", message);
}

/* Version 2 is one that this library does not know: it may have other keys, values and kinds of lines. */
TEST(of_newer_files_the_known_lines_are_read) {
  wlmi_measurement_record record = sample_measurement(0), second = sample_measurement(1);
  HELD(wlmi_text) line = {0}, other_line = {0}, text = {0};
  char warning[512] = "";
  int64_t added = 0;
  wlmi_measurement_line(&record, &line);
  wlmi_measurement_line(&second, &other_line);
  FREED char *more = replaced(line.data, "\"time_ps\":", "\"energy_uj\":7,\"time_ps\":");
  wlmi_text_printf(&text, "{\"warploom\":\"tuned\",\"version\":2,\"by\":\"0.9\"}\n%s\n%s\n{\"feature\":[1]}\n", more,
                   other_line.data);
  wlm_set_log(keep_line, warning, WLM_LOG_WARNING);
  assert_status(WLM_OK, import_string(store, text.data, "new.jsonl", &added));
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  assert_int_equal(added, 1);
  assert_int_equal(measurements_in(store), 1);
  assert_string_equal(warning,
                      "new.jsonl was written by a newer warploom: 2 lines were left out, which this version does not "
                      "understand (line 2: unknown key energy_uj)");
}

TEST(malformed_files_are_named) {
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "x:1: not a warploom export"},
      {"\n", "x:1: not a warploom export"},
      {"%%MatrixMarket matrix coordinate real general\n", "x:1: not a warploom export"},
      {"{}\n", "x:1: not a warploom export: warploom must be \"tuned\""},
      {"{\"warploom\":\"tuned\"}\n", "x:1: version must be an integer"},
      {"{\"warploom\":\"tuned\",\"version\":\"1\"}\n", "x:1: version must be an integer"},
      {"{\"warploom\":\"tuned\",\"version\":0}\n", "x:1: version must be at least 1"},
      {"{\"warploom\":\"other\",\"version\":1}\n", "x:1: not a warploom export: warploom must be \"tuned\""},
      {"{\"warploom\":\"tuned\",\"version\":1}\n\n", "x:2: not a JSON object"},
      {"{\"warploom\":\"tuned\",\"version\":1}\n{}", "x:2: id is missing"},
      {"{\"warploom\":\"tuned\",\"version\":1}\n{\"id\":\"0123456789abcdef0123456789abcdef\"}",
       "x:2: device_kind is missing"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_fails(WLM_ERR_PARSE, import_string(store, cases[i].text, "x", NULL), cases[i].message);
  }
  const char *path = folder_file(&folder, "nul.jsonl");
  write_whole(path, "{\"warploom\":\"tuned\",\"version\":1}\n{\0}\n", 37);
  assert_fails(WLM_ERR_PARSE, import_path(store, path, NULL), "nul.jsonl:2: holds a NUL byte");
  assert_status(WLM_OK, import_string(store, "{\"warploom\":\"tuned\",\"version\":1}", "x", NULL));
}

/* Import checks that a line is JSON before SQLite reads it: SQLite 3.40 crashes on the first of these lines, in
 * which an object stands for a key. */
TEST(invalid_json_is_refused) {
  static const char *const lines[] = {
      "{\"\":\"\",\"\":2,{\"\":\"\",\"\":\"\",\"\":\"\",\"\":6,\"\":\"\"}:false,\"\":\"\",\"\":7}",
      "{1:2}",
      "{\"id\":}",
      "{\"id\" \"\"}",
      "{\"id\":01}",
      "{'id':1}",
      "{\"id\":1,}",
      "{\"id\":tru}",
      "\"id\"",
      "7",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    HELD(wlmi_text) text = {0};
    wlmi_text_printf(&text, "{\"warploom\":\"tuned\",\"version\":1}\n%s\n", lines[i]);
    assert_fails(WLM_ERR_PARSE, import_string(store, text.data, "x", NULL), "x:2: not a JSON object");
  }
  HELD(wlmi_text) deep = {0};
  wlmi_text_puts(&deep, "{\"warploom\":\"tuned\",\"version\":1}\n");
  for (int i = 0; i < 100000; i++) wlmi_text_puts(&deep, "{\"id\":[");
  assert_status(WLM_ERR_PARSE, import_string(store, deep.data, "x", NULL));
  assert_contains(wlm_error_detail(), "x:2: not a JSON object");
}

/* Exports of older versions have no prepare_ps; a line with prepare_ps = 0 has the same id. */
TEST(a_missing_prepare_ps_is_0) {
  const char *const old = export_of_0_1;
  wlmi_measurement_record *records;
  int64_t count, added;
  assert_status(WLM_OK, import_string(store, old, "old.jsonl", &added));
  assert_int_equal(added, 1);
  assert_status(WLM_OK, wlmi_store_load(store, NULL, &records, &count));
  assert_int_equal(count, 1);
  assert_int_equal(records->prepare_ps, 0);
  wlmi_measurements_free(records, count);
  WLM_FREED char *again = export_of(store);
  assert_string_equal(again, old);
  FREED char *spelled = replaced(old, "\"samples\":9", "\"prepare_ps\":0,\"samples\":9");
  assert_status(WLM_OK, import_string(store, spelled, "x", &added));
  assert_int_equal(added, 0);
  FREED char *changed = replaced(old, "\"samples\":9", "\"prepare_ps\":5,\"samples\":9");
  assert_fails(WLM_ERR_PARSE, import_string(store, changed, "x", &added), "changed after its export");
}

/* Import accepts other spellings of the same content, as other tools write them. */
TEST(other_spellings_are_the_same_content) {
  static const char *const respelled[][2] = {
      {"\"time_ps\":1000000", "\"time_ps\" : 1000000 "}, {"}", "}\r"},          {"sm_90", "\\u0073m_90"},
      {"\"top_share\":0.1", "\"top_share\":1.00E-1"},    {"\u00e9", "\\u00e9"}, {"\"n\":32,", "\"n\":32,\t"}};
  fill(store, 0, 1);
  WLM_FREED char *good = export_of(store);
  FREED char *text = strdup(strchr(good, '\n') + 1);
  for (size_t i = 0; i < sizeof respelled / sizeof *respelled; i++) {
    char *next = replaced(text, respelled[i][0], respelled[i][1]);
    free(text);
    text = next;
  }
  FREED char *file = replaced(good, strchr(good, '\n') + 1, text);
  assert_status(WLM_OK, import_string(other, file, "x", NULL));
  WLM_FREED char *again = export_of(other);
  assert_string_equal(again, good);
}

/* Import of a randomly damaged export never crashes, and accepts only lines that are unchanged. */
TEST(damaged_lines_are_never_imported) {
  fill(other, 0, 6);
  WLM_FREED char *good = export_of(other);
  FREED char *copy = strdup(good);
  size_t size = strlen(good);
  uint64_t seed = 11;
  for (int round = 0; round < 1500; round++) {
    memcpy(copy, good, size);
    for (int flips = 0; flips <= round % 3; flips++) copy[draw(&seed) % size] = (char)(1 + draw(&seed) % 255);
    if (import_string(store, copy, "x", NULL) == WLM_OK) continue;
    assert_int_equal(0, strncmp(wlm_error_detail(), "x:", 2));
  }
  WLM_FREED char *got = export_of(store);
  for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n")) assert_contains(good, line);
}

EACH(setup, teardown)
