/* Choices from databases: pins, measurements of other device classes, stale measurements, a refresh after another
 * process wrote, and layers of exported data. The measurements are hand-made; nothing is timed. */
#include <sys/stat.h>
#include <unistd.h>

#include "core/synth/input.h"
#include "db/interchange.h"
#include "runtime/context_state.h"
#include "runtime/devices.h"
#include "support/command.h"
#include "support/db_fixture.h"
#include "support/stats.h"
#include "support/test.h"
#include "tuner/upload.h"

#define FIRST  "host_row/rows=128,tile=16" /* the rules' choice: a case is used only if it has measured this one */
#define SECOND "host_nnz/nonzeros=8192,tile=16"
#define THIRD  "host_row/rows=16,tile=16"

static char user[320], system_path[320];
static const char *layers[4];
static int64_t layer_count;
static wlm_context *context;
static wlmi_csr_host csr;
static wlmi_upload upload;

static void open_context(void) {
  wlm_context_options options = CONTEXT_OPTIONS(.device = "host", .database = user, .system_database = system_path,
                                                .layers = layers, .layer_count = layer_count);
  assert_status(WLM_OK, wlm_context_create(&options, &context));
  assert_status(WLM_OK, wlmi_upload_create(context, &csr, WLM_I32, &upload));
}

static int setup(void **state) {
  if (home_begin(state)) return -1;
  snprintf(user, sizeof user, "%s/user.db", folder.path);
  snprintf(system_path, sizeof system_path, "%s/system.db", folder.path);
  layer_count = 0;
  if (wlmi_input_read("uniform:rows=300,d=4", &csr) != WLM_OK) return -1;
  open_context();
  return 0;
}

static int teardown(void **state) {
  wlmi_upload_release(&upload);
  wlmi_csr_host_release(&csr);
  wlm_context_destroy(context);
  return folder_end(state);
}

static wlm_problem problem_of(void) { return (wlm_problem)PROBLEM(.n = 8); }

/* The text of explain after a refresh. */
static char *why(void) {
  const wlm_problem problem = problem_of();
  assert_status(WLM_OK, wlm_context_refresh(context));
  GET(wlm_plan *, plan, wlm_plan_create(context, upload.matrix, &problem, &plan));
  GET(char *, text, wlm_plan_explain(plan, 1, &text));
  wlm_plan_destroy(plan);
  assert_true(json_is_valid(text));
  return text;
}

/* Checks what explain says at these paths; NULL = the value must be null. */
#define assert_whys(...)           check_why((const char *const[][2]){__VA_ARGS__, {NULL, NULL}})
#define assert_why(path, expected) assert_whys({path, expected})
static void check_why(const char *const (*fields)[2]) {
  WLM_FREED char *text = why();
  for (; (*fields)[0]; fields++) {
    FREED char *value = json_at(text, (*fields)[0]);
    const char *expected = (*fields)[1];
    if (expected ? !value || strcmp(value, expected) : value != NULL)
      fail_msg("%s is %s, expected %s in %s", (*fields)[0], value ? value : "null", expected ? expected : "null", text);
  }
}

static char key[WLMI_SPEC_KEY];

/* A measurement of the matrix with the present device, compiler and driver. */
static wlmi_measurement_record measured(const char *variant, int64_t time_ps) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  const wlm_problem problem = problem_of();
  GET(wlmi_spec, spec, wlmi_context_spec(context, upload.matrix, &problem, &spec));
  wlmi_spec_key(&spec, key);
  wlmi_measurement_record record =
      MEASUREMENT(.stats = test_stats_of(&csr), .matrix_name = "made up", .variant = (char *)variant, .problem = key,
                  .n = 8, .compiler = (char *)info->compiler, .driver = (char *)info->driver, .time_ps = time_ps);
  record.device = wlmi_device_record_of(wlmi_context_device(context));
  return record;
}

static void put(const char *path, wlmi_measurement_record record) {
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
}

static void pin_on(const char *path, const char *device, const char *variant) {
  HELD(wlmi_text) class = {0};
  char place[WLMI_HASH_HEX];
  wlmi_measurement_record like = measured(variant, 1);
  wlmi_hash_to_hex((wlmi_hash){like.stats.fingerprint[0], like.stats.fingerprint[1]}, place);
  if (device) like.device.name = (char *)device;
  wlmi_device_class(&like.device, &class);
  const wlmi_pin_record record = {class.data, place, key, 8, (char *)variant};
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_pin(store, &record));
}

static void pin(const char *path, const char *variant) { pin_on(path, NULL, variant); }

TEST(a_refresh_sees_measurements_and_pins) {
  assert_why("$.step", "rule");
  put(user, measured(FIRST, 1000));
  assert_whys({"$.step", "fingerprint"}, {"$.variant", FIRST});
  pin(user, SECOND);
  assert_whys({"$.step", "pin"}, {"$.variant", SECOND}, {"$.pin", SECOND});
}

/* The expected time of a product is the measured one of its choice, and not known where rules alone choose; the simple
 * one is always known and grows with n. A transposed product gets both without an A^T. */
TEST(times_are_expected_before_a_plan) {
  wlm_problem problem = problem_of();
  double seconds, simple, wider;
  assert_status(WLM_OK, wlm_expected_seconds(context, upload.matrix, &problem, &seconds, &simple));
  assert_true(seconds == 0);
  assert_true(simple > 0);
  put(user, measured(FIRST, 900000));
  put(user, measured(SECOND, 500000));
  assert_status(WLM_OK, wlm_context_refresh(context));
  assert_status(WLM_OK, wlm_expected_seconds(context, upload.matrix, &problem, &seconds, NULL));
  assert_true(seconds == 500000 / WLMI_PICOSECONDS);
  assert_why("$.expected_us", "0.5");
  problem.n = 800;
  assert_status(WLM_OK, wlm_expected_seconds(context, upload.matrix, &problem, &seconds, &wider));
  assert_true(wider > simple);
  problem.transpose = 1;
  assert_status(WLM_OK, wlm_expected_seconds(context, upload.matrix, &problem, &seconds, &simple));
  assert_true(simple > 0);
  assert_false(wlmi_matrix_has_transpose(upload.matrix));
  problem.n = -1;
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlm_expected_seconds(context, upload.matrix, &problem, &seconds, &simple));
}

/* An import into the context's database needs no refresh. */
TEST(an_import_is_used_at_once) {
  const wlm_problem problem = problem_of();
  put(user, measured(FIRST, 900));
  put(user, measured(SECOND, 500));
  WLM_FREED GET(char *, lines, wlm_export_string(context, &lines));
  assert_int_equal(unlink(user), 0);
  assert_status(WLM_OK, wlm_context_refresh(context));
  GET(wlmi_decision, d, wlmi_context_choose(context, upload.matrix, &problem, &d));
  assert_int_equal(d.step, WLMI_STEP_RULE);
  assert_status(WLM_OK, wlm_import_string(context, lines, NULL));
  assert_status(WLM_OK, wlmi_context_choose(context, upload.matrix, &problem, &d));
  assert_string_equal(d.variant, SECOND);
}

/* The measurements of both databases on one matrix are used together, as after a merge. Pins go before measurements,
 * the user's pin first. */
TEST(both_databases_are_used_together) {
  put(system_path, measured(FIRST, 1000));
  assert_why("$.variant", FIRST);
  put(user, measured(SECOND, 5000));
  assert_whys({"$.variant", FIRST}, {"$.ranking[1].variant", SECOND});
  put(user, measured(SECOND, 500));
  put(user, measured(SECOND, 501));
  assert_why("$.variant", SECOND); /* the median of three measurements */
  pin(system_path, FIRST);
  assert_why("$.variant", FIRST); /* the system's pin overrides the user's measurements */
  pin(user, SECOND);
  assert_why("$.variant", SECOND);
}

/* Measurements with an older source of the kernel are ignored, in either database. A measurement that both databases
 * have counts once. Times of online tuning never win over a tuning. */
TEST(newer_sources_and_tunings_win) {
  wlmi_measurement_record record = measured(SECOND, 500);
  put(system_path, record);
  put(user, record);
  record.time_ps = 3000;
  put(user, record);
  put(system_path, measured(FIRST, 1600));
  assert_why("$.variant", FIRST); /* (500 + 3000) / 2 */
  record = measured(FIRST, 9000);
  record.version = "00000000000000000000000000000002";
  record.made_at++;
  put(user, record);
  assert_why("$.variant", SECOND);
  record = measured(THIRD, 1);
  record.clock = "online";
  record.samples = 1000;
  put(user, record);
  assert_whys({"$.variant", SECOND}, {"$.ranking[1].variant", THIRD});
}

/* The rules' kernel failed on this matrix, by a tuning here or an import, so the next rule decides. */
TEST(failed_kernels_are_listed_and_not_chosen) {
  WLM_FREED char *text = why();
  FREED char *chosen = json_at(text, "$.variant");
  wlmi_measurement_record record = measured(chosen, 0);
  record.failed = 1;
  record.reason = "it was wrong";
  put(system_path, record);
  wlm_string_free(text);
  text = why();
  FREED char *other = json_at(text, "$.variant");
  assert_string_not_equal(other, chosen);
  assert_whys({"$.step", "rule"}, {"$.failed", "1"}, {"$.failures[0].variant", chosen},
              {"$.failures[0].reason", "it was wrong"});
  record.failed = 0; /* the kernel was corrected and measured again */
  record.reason = "";
  record.time_ps = 1000;
  record.made_at++;
  put(user, record);
  assert_whys({"$.variant", chosen}, {"$.failed", "0"});
}

/* An interrupted tuning leaves a case with a single candidate. It is not used, because the rules' choice may be
 * faster. */
TEST(thin_cases_do_not_decide) {
  put(system_path, measured(SECOND, 1000));
  assert_whys({"$.step", "rule"}, {"$.variant", FIRST}, {"$.distance", NULL}, {"$.thin.known", "1"},
              {"$.thin.variant", SECOND});
  put(user, measured(FIRST, 2000));
  assert_whys({"$.step", "fingerprint"}, {"$.variant", SECOND}, {"$.thin", NULL});
}

TEST(measurements_of_a_similar_device_are_used) {
  char class[320];
  wlmi_measurement_record record = measured(FIRST, 1000);
  record.device.name = "another of the kind";
  put(system_path, record);
  snprintf(class, sizeof class, "host/%s/another of the kind/%d", record.device.arch, record.device.processors);
  assert_whys({"$.step", "fingerprint"}, {"$.variant", FIRST}, {"$.borrowed", class});
  pin_on(user, "another of the kind", SECOND);
  assert_why("$.step", "fingerprint"); /* a pin is for its own class only */
  put(user, measured(SECOND, 5000));
  /* the new case has only one candidate as well, but the other class measured the rules' choice */
  assert_why("$.borrowed", class);
  put(user, measured(FIRST, 6000));
  assert_whys({"$.variant", SECOND}, {"$.borrowed", NULL});
}

TEST(stale_measurements_are_used_and_marked) {
  wlmi_measurement_record record = measured(FIRST, 1000);
  record.compiler = "cc 1.0";
  record.driver = "7.7";
  put(user, record);
  assert_whys({"$.step", "fingerprint"}, {"$.stale", "cc 1.0, driver 7.7"}, {"$.ranking[0].stale", "1"},
              {"$.nearest[0].stale", "1"}, {"$.compiler", wlmi_context_device(context)->info.compiler});
  record.stats.fingerprint[0]++; /* the same for a similar matrix */
  put(system_path, record);
  record.variant = THIRD;
  record.time_ps = 2000;
  put(system_path, record);
  run_sql(user, "DELETE FROM measurement");
  assert_whys({"$.step", "similar"}, {"$.variant", FIRST}, {"$.stale", "cc 1.0, driver 7.7"});
  put(user, measured(FIRST, 900));
  put(user, measured(SECOND, 500));
  assert_whys({"$.variant", SECOND}, {"$.stale", NULL});
}

/* With a damaged database each call succeeds with the remaining information, and the file is not changed. */
TEST(damaged_databases_fail_no_call) {
  put(system_path, measured(FIRST, 1000));
  put(user, measured(SECOND, 500));
  run_sql(user, "INSERT INTO pin VALUES ((SELECT class FROM device), 'somewhere', 'p', 8, 'x')");
  assert_why("$.variant", SECOND); /* an invalid pin makes all pins of the file unused */
  run_sql(user, "DELETE FROM variant");
  assert_why("$.variant", FIRST); /* the system's measurement, since the user's has no variant */
  run_sql(system_path, "PRAGMA user_version = 77");
  assert_why("$.step", "rule");
  write_whole(user, "nonsense", 8);
  assert_why("$.step", "rule");
  size_t size;
  FREED unsigned char *bytes = read_whole(user, &size);
  assert_int_equal(size, 8);
}

/* A refresh that cannot read a database fails and keeps the old snapshot. */
TEST(a_failed_refresh_keeps_the_snapshot) {
  char path[320];
  const wlm_problem problem = problem_of();
  wlmi_upload_release(&upload);
  wlm_context_destroy(context);
  const char *sub = in_folder("sub");
  snprintf(path, sizeof path, "%s/user.db", sub);
  snprintf(user, sizeof user, "%s", path);
  open_context();
  put(user, measured(SECOND, 500));
  put(user, measured(FIRST, 900));
  assert_why("$.variant", SECOND);
  unlink(user);
  assert_int_equal(rmdir(sub), 0);
  write_whole(sub, "a file", 6); /* a file where the folder was */
  assert_status(WLM_ERR_IO, wlm_context_refresh(context));
  GET(wlmi_decision, d, wlmi_context_choose(context, upload.matrix, &problem, &d));
  assert_string_equal(d.variant, SECOND);
  unlink(sub);
  assert_status(WLM_OK, wlm_context_refresh(context)); /* a missing database counts as empty */
  assert_status(WLM_OK, wlmi_context_choose(context, upload.matrix, &problem, &d));
  assert_int_equal(d.step, WLMI_STEP_RULE);
}

/* Of two concurrent refreshes, the one that ends later may have read earlier. */
TEST(the_newer_of_two_snapshots_stays) {
  wlmi_snapshot *older, *newer, *seen;
  assert_status(WLM_OK, wlmi_snapshot_create(&older));
  assert_status(WLM_OK, wlmi_snapshot_create(&newer));
  older->generation = 1;
  newer->generation = 2;
  wlmi_context_install(context, newer);
  seen = wlmi_context_snapshot(context);
  wlmi_context_install(context, older);
  assert_ptr_equal(seen, newer);
  assert_ptr_equal(context->snapshot, newer);
  assert_int_equal(seen->generation, 2); /* the reference keeps the snapshot alive */
  wlmi_snapshot_release(seen);
}

/* ---- layers ---- */

static char at_path[8][320];

static char *at(int slot, const char *name) {
  snprintf(at_path[slot], sizeof at_path[slot], "%s/%s", folder.path, name);
  return at_path[slot];
}

/* Writes what a database has as `warploom export` does. */
static void export_to(const char *database, const char *lines) {
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_store_export_path(store, lines));
}

static void reopen_with(const char *first, const char *second) {
  wlmi_upload_release(&upload);
  wlm_context_destroy(context);
  layers[0] = first;
  layers[1] = second;
  layer_count = second ? 2 : 1;
  open_context();
}

/* User, then the last layer, then those before it, then the shipped one. */
TEST(layers_lie_between_the_user_and_the_system) {
  char *database = at(0, "a.db"), *lines = at(1, "b.jsonl"), *source = at(2, "b.db");
  size_t sizes[2];
  pin(system_path, FIRST);
  pin(database, SECOND);
  pin(source, THIRD);
  export_to(source, lines);
  unsigned char *before = read_whole(database, &sizes[0]), *after;
  reopen_with(database, NULL);
  assert_why("$.variant", SECOND);
  reopen_with(database, lines);
  assert_why("$.variant", THIRD);
  reopen_with(lines, database);
  assert_why("$.variant", SECOND);
  pin(user, FIRST);
  assert_why("$.variant", FIRST);
  after = read_whole(database, &sizes[1]);
  assert_int_equal(sizes[0], sizes[1]);
  assert_memory_equal(before, after, sizes[0]);
  free(before), free(after);
  WLM_FREED GET(char *, info, wlm_context_info(context, &info));
  assert_json(info, {"$.layers[0]", database}, {"$.layers[1]", lines});
}

/* Measurements of all layers are used together, and those of a similar device too. */
TEST(measurements_of_layers_are_a_union) {
  char *database = at(0, "a.db"), *lines = at(1, "b.jsonl"), *source = at(2, "b.db");
  put(database, measured(FIRST, 1000));
  put(source, measured(SECOND, 500));
  export_to(source, lines);
  reopen_with(lines, database);
  assert_whys({"$.step", "fingerprint"}, {"$.variant", SECOND}, {"$.ranking[1].variant", FIRST});
  put(database, measured(FIRST, 10)); /* as another process does; the median is 505 */
  put(user, measured(FIRST, 20));
  assert_why("$.variant", FIRST);
  wlmi_measurement_record similar = measured(THIRD, 1);
  similar.device.name = "another of the kind";
  similar.n = 16;
  put(source, similar);
  export_to(source, lines);
  assert_why("$.variant", FIRST);
  assert_int_equal(unlink(lines), 0);
  assert_fails(WLM_ERR_NOT_FOUND, wlm_context_refresh(context), lines);
}

/* A folder stands for its files by name; others, and folders in it, are left alone, and nothing is written. */
TEST(a_folder_is_read_by_the_names_of_its_files) {
  char *place = at(0, "site"), *source = at(1, "source.db");
  assert_int_equal(mkdir(place, 0700), 0);
  pin(at(2, "site/2.db"), SECOND);
  pin(source, THIRD);
  export_to(source, at(3, "site/1.jsonl"));
  write_whole(at(4, "site/README"), "no data", 7);
  assert_status(WLM_OK, wlmi_kernel_archive_write(at(5, "site/3.archive"), NULL, 0, NULL));
  assert_int_equal(mkdir(at(6, "site/more"), 0700), 0);
  assert_int_equal(chmod(at(2, "site/2.db"), 0444), 0);
  assert_int_equal(chmod(place, 0555), 0);
  reopen_with(place, NULL);
  assert_why("$.variant", SECOND);
  assert_int_equal(chmod(place, 0755), 0);
  assert_int_equal(rename(at(3, "site/1.jsonl"), at(4, "site/3.jsonl")), 0);
  reopen_with(place, NULL);
  assert_why("$.variant", THIRD);
  assert_int_equal(rename(at(2, "site/2.db"), at(4, "site/4.db")), 0);
  assert_status(WLM_ERR_NOT_FOUND, wlm_context_refresh(context)); /* the files were found when the context was made */
}

/* Version 2 of the schema lacks only recorded problems. A newer export is read as far as it is understood. */
TEST(layers_of_other_versions) {
  char *old = at(0, "old.db"), *lines = at(1, "new.jsonl");
  put(old, measured(FIRST, 1000));
  put(old, measured(SECOND, 500));
  export_to(old, lines);
  run_sql(old, "DROP TABLE recorded; PRAGMA user_version = 2");
  reopen_with(old, NULL);
  assert_why("$.variant", SECOND);
  char *text = text_of(lines), newer[1 << 14];
  snprintf(newer, sizeof newer, "{\"warploom\":\"tuned\",\"version\":2}\n{\"hint\":1}%s", strchr(text, '\n'));
  free(text);
  write_whole(lines, newer, strlen(newer));
  reopen_with(lines, NULL);
  assert_why("$.variant", SECOND);
}

static void refuse_layer(const char *path, wlm_status expected, const char *says) {
  wlm_context_options options = BARE_OPTIONS(.device = "host", .layers = &path, .layer_count = 1);
  wlm_context *none = NULL;
  const wlm_status status = wlm_context_create(&options, &none);
  if (status != expected || none || !strstr(wlm_error_detail(), says))
    fail_msg("%s: %s, %s", path, wlm_status_name(status), wlm_error_detail());
}

TEST(a_layer_that_cannot_be_used_is_an_error) {
  char *database = at(0, "a.db"), *lines = at(1, "a.jsonl"), *damaged = at(2, "damaged");
  size_t size;
  put(database, measured(FIRST, 1000));
  export_to(database, lines);
  FREED unsigned char *bytes = read_whole(database, &size);
  refuse_layer(NULL, WLM_ERR_INVALID_ARGUMENT, "the path of a layer is empty");
  refuse_layer("", WLM_ERR_INVALID_ARGUMENT, "the path of a layer is empty");
  refuse_layer(at(3, "nowhere"), WLM_ERR_NOT_FOUND, "nowhere: No such file or directory");
  assert_int_equal(mkdir(at(3, "empty"), 0700), 0);
  refuse_layer(at_path[3], WLM_ERR_NOT_FOUND, "empty: has no file that ends in .db, .jsonl or .archive");
  refuse_layer("/dev/null", WLM_ERR_DATABASE, "/dev/null: is not an ordinary file");
  write_whole(damaged, "", 0);
  refuse_layer(damaged, WLM_ERR_PARSE, "damaged: is neither an export of warploom, nor a tuning database");
  write_whole(damaged, "wlmkerns", 8);
  refuse_layer(damaged, WLM_ERR_DATABASE, "damaged: is no kernel archive");
  write_whole(damaged, bytes, size / 2);
  refuse_layer(damaged, WLM_ERR_DATABASE, "is damaged");
  free(bytes);
  bytes = read_whole(lines, &size);
  write_whole(damaged, bytes, size - 20);
  refuse_layer(damaged, WLM_ERR_PARSE, "damaged:2: not a JSON object");
  write_whole(damaged, "{}", 2);
  refuse_layer(damaged, WLM_ERR_PARSE, "damaged:1: not a warploom export");
  run_sql(database, "PRAGMA user_version = 1");
  refuse_layer(database, WLM_ERR_DATABASE_VERSION, "found schema version 1");
  assert_int_equal(chmod(lines, 0666), 0);
  refuse_layer(lines, WLM_ERR_IO, "others may write to it");
}

EACH(setup, teardown)
