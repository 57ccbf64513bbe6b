/* warploom db candidates through the real binary, on hand-made measurements. */
#include "support/command.h"
#include "support/test.h"
#include "tuner/train.h"

#define EVIL   "</script><script>alert(1)</script>&'\""
#define ROW128 "host_row/rows=128,tile=32"
#define ROW16  "host_row/rows=16,tile=32"
#define NNZ    "host_nnz/nonzeros=8192,tile=32"

static const char problem_key[] = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none";

static wlmi_measurement_record measured(const char *matrix, int64_t id, const char *variant, double us) {
  return (wlmi_measurement_record){.device = {"A <b>processor</b>", "host", "x86_64", 2, 1 << 30},
                                   .matrix_name = (char *)matrix,
                                   .stats = {.size = sizeof(wlm_stats),
                                             .rows = 1000,
                                             .cols = 1000,
                                             .nnz = 7000,
                                             .longest = 9,
                                             .rows_le_16 = 1000,
                                             .cv = 0.2,
                                             .fingerprint = {(uint64_t)id, 5}},
                                   .variant = (char *)variant,
                                   .version = "0123456789abcdef0123456789abcdef",
                                   .problem = (char *)problem_key,
                                   .n = 32,
                                   .compiler = "cc 12.2.0 <x>",
                                   .clock = "hot",
                                   .time_ps = (int64_t)(us * 1e6),
                                   .spread_ps = 100000,
                                   .samples = 9,
                                   .calls_per_sample = 2,
                                   .max_rel_err = 1e-7,
                                   .made_at = 1700000000 + id};
}

static void put(const char *database, const wlmi_measurement_record *records, int64_t count) {
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put(store, records, count));
}

/* Two matrices of one size and a larger one; the best variant takes 10 us on each. */
static void fill(const char *database) {
  static const struct {
    const char *matrix, *variant;
    double us;
  } times[] = {
      {EVIL, ROW128, 20}, {EVIL, ROW16, 10}, {EVIL, NNZ, 40},  {"b", ROW128, 30}, {"b", ROW16, 20},
      {"b", NNZ, 10},     {"c", ROW128, 10}, {"c", ROW16, 20}, {"c", NNZ, 40},    {"c", "own" EVIL "/x=1", 50}};
  enum { COUNT = sizeof times / sizeof *times };
  wlmi_measurement_record records[COUNT];
  for (int i = 0; i < COUNT; i++) {
    const int id = *times[i].matrix == 'c' ? 3 : *times[i].matrix == 'b' ? 2 : 1;
    records[i] = measured(times[i].matrix, id, times[i].variant, times[i].us);
    if (id == 3) records[i].stats.rows = records[i].stats.rows_le_16 = 1000000;
    if (id == 3) records[i].stats.nnz = 900000;
  }
  put(database, records, COUNT);
}

static char database[300];

static void set_path(const char *name) {
  char file[64];
  snprintf(file, sizeof file, "%s.db", name);
  snprintf(database, sizeof database, "%s", folder_file(&folder, file));
}

/* What the command prints; free(). */
static char *listed(const char *option, const char *value) {
  command c = RUN(0, "db", "candidates", "--db", database, "--json", option, value);
  char *json = strdup(c.out);
  assert_true(json_is_valid(json));
  return json;
}

static void assert_row(const char *json, int row, const char *member, const char *expected) {
  char path[64];
  snprintf(path, sizeof path, "$.candidates[%d].%s", row, member);
  assert_json_at(json, path, expected);
}

/* ---- tests -------------------------------------------------------------------------------------------------- */

TEST(candidates_are_ranked_and_name_their_choosers) {
  set_path("listed");
  fill(database);
  FREED char *json = listed(NULL, NULL);
  assert_json(json, {"$.database", database}, {"$.device_class", "host/x86_64/A <b>processor</b>/2"},
              {"$.trained_at", "0"});
  static const struct {
    const char *matrix, *variant, *us, *chosen_by;
  } rows[] = {{EVIL, ROW16, "10", ""},
              {EVIL, ROW128, "20", "rules, other problems"},
              {EVIL, NNZ, "40", ""},
              {"b", NNZ, "10", ""},
              {"b", ROW16, "20", ""},
              {"b", ROW128, "30", "rules, other problems"},
              {"c", ROW128, "10", "rules, other problems"}};
  for (int i = 0; i < 7; i++) {
    assert_row(json, i, "matrix", rows[i].matrix);
    assert_row(json, i, "variant", rows[i].variant);
    assert_row(json, i, "us", rows[i].us);
    assert_row(json, i, "chosen_by", rows[i].chosen_by);
  }
  assert_row(json, 0, "problem", problem_key);
  assert_row(json, 0, "n", "32");
  assert_row(json, 0, "fingerprint", "00000000000000010000000000000005");
  assert_row(json, 0, "bucket", "v1 rows=9 mean=5 cv=0");
  assert_row(json, 0, "spread_us", "0.1");
  assert_row(json, 0, "prepare_us", "0");
  assert_row(json, 0, "measurements", "1");
  assert_row(json, 0, "timed", "measured");
  assert_row(json, 9, "variant", "own" EVIL "/x=1");
  assert_null(json_at(json, "$.candidates[10]"));
  assert_json(json, {"$.ways[0].way", "rules"}, {"$.ways[0].cases", "3"},
              {"$.ways[0].problems", "dense=f32,rowptr=i32,colind=i32,sample=none"});
  assert_json_at(json, "$.ways[0].mean_over_best", "1.81712059283214"); /* of 2, 3 and 1 */
  assert_json_at(json, "$.ways[0].worst_over_best", "3");
  assert_json_at(json, "$.ways[1].way", "other problems"); /* no model predicts */
}

/* Of two problems on one matrix each takes the choice of the other one. */
static void left_out(const char *name, const char *a, const char *b, const char *cases, const char *worst) {
  static const double us[2][2] = {{10, 12}, {15, 10}};
  static const char *const variants[2] = {ROW16, NNZ};
  wlmi_measurement_record records[4];
  set_path(name);
  for (int i = 0; i < 4; i++) {
    records[i] = measured("a", 1, variants[i % 2], us[i / 2][i % 2]);
    records[i].problem = (char *)(i / 2 ? b : a);
  }
  put(database, records, 4);
  FREED char *json = listed(NULL, NULL);
  /* the rules choose what was not measured */
  assert_json(json, {"$.ways[0].way", "other problems"}, {"$.ways[0].cases", cases},
              {"$.ways[0].worst_over_best", worst});
}

TEST(problems_are_left_out) {
  left_out("messages",
           "op=custom{sum=relu(b+e)},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message",
           "op=custom{sum=b*e},dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=message", "2", "1.5");
  left_out("types", "op=mul.sum,dense=f16,rowptr=i64,colind=i64,values=f16,sample=none",
           "op=mul.sum,dense=f16,rowptr=i32,colind=i32,values=f16,sample=none", "1",
           "1.2"); /* 32 bits never follow 64 */
}

/* The rules choose ROW128; ROW16 takes half of its time, and as much as eight calls of it to be prepared. */
TEST(preparation_is_shared_by_the_calls) {
  static const char *const calls[] = {"1", "4", "100"}, *const over_best[] = {"1", "1", "1.85185185185185"};
  wlmi_measurement_record records[] = {measured("a", 1, ROW128, 20), measured("a", 1, ROW16, 10)};
  records[1].prepare_ps = 80 * 1000000;
  set_path("calls");
  put(database, records, 2);
  for (int i = 0; i < 3; i++) {
    FREED char *json = listed("--calls", calls[i]);
    assert_json(json, {"$.ways[0].way", "rules"}, {"$.ways[0].mean_over_best", over_best[i]});
  }
}

TEST(other_device_classes_are_left_out) {
  set_path("classes");
  fill(database);
  wlmi_measurement_record other = measured("far", 9, "row_crc/cf=1,rows=4", 3), prepared, failed, cold;
  other.device = (wlmi_device_record){"NVIDIA H200", "cuda", "sm_90", 132, 1 << 30};
  prepared = failed = cold = other;
  prepared.variant = "merge_path/prepared=1"; /* is listed, but is not the winner */
  prepared.time_ps /= 2;
  prepared.prepare_ps = 7000000;
  failed.variant = "row_vec/x=1";
  failed.failed = 1;
  failed.time_ps = failed.spread_ps = 0;
  failed.reason = "too <much>";
  cold.clock = WLMI_CLOCK_COLD;
  put(database, (wlmi_measurement_record[]){other, prepared, failed, cold}, 4);

  FREED char *json = listed(NULL, NULL); /* by default the device class with the most measurements */
  assert_json_at(json, "$.device_class", "host/x86_64/A <b>processor</b>/2");
  free(json);
  json = listed("--device", "cuda:0");
  assert_json_at(json, "$.device_class", "cuda/sm_90/NVIDIA H200/132");
  assert_row(json, 0, "us", "3");
  assert_row(json, 1, "us", "1.5");
  assert_row(json, 1, "prepare_us", "7");
  assert_row(json, 2, "variant", "row_vec/x=1");
  assert_row(json, 2, "timed", "failed");
  assert_null(json_at(json, "$.candidates[2].us"));
  assert_null(json_at(json, "$.candidates[3]"));
  command c = RUN(2, "db", "candidates", "--db", database, "--device", "H100");
  assert_contains(c.err, "H100", "cuda/sm_90/NVIDIA H200/132");
}

/* Stores any model of the device class: the test needs only that there is one. */
static void put_model(const wlmi_measurement_record *records, int64_t count) {
  const wlmi_limits limits = {.target = WLMI_TARGET_HOST, .processors = 2, .l2_bytes = 1 << 20};
  HELD(wlmi_text) device_class = {0};
  wlmi_device_class(&records->device, &device_class);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  HOLD(wlmi_models, models, wlmi_models_train(generator, &limits, records, count, &models));
  assert_int_equal(models.count, 1);
  wlmi_model_record record = {.name = models.models[0].problems, .made_at = 1700000000};
  assert_status(WLM_OK, wlmi_model_write(&models.models[0], &record.data, &record.size));
  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  assert_status(WLM_OK, wlmi_store_put_model(store, device_class.data, &record));
  wlmi_store_close(store);
  wlmi_free(record.data);
}

/* ROW16 wins on every matrix, which the rules do not know and a model trained on 48 of the 64 matrices does. */
TEST(models_are_trained_without_the_tested_matrices) {
  enum { MATRICES = 64, VARIANTS = 3 };
  static const char *const variants[VARIANTS] = {ROW16, ROW128, NNZ};
  wlmi_measurement_record records[MATRICES * VARIANTS];
  for (int i = 0; i < MATRICES * VARIANTS; i++) {
    const int id = i / VARIANTS + 10;
    records[i] = measured("m", id, variants[i % VARIANTS], (i % VARIANTS + 1) * id);
    records[i].stats.nnz = 500 * id;
    records[i].stats.mean = 0.5 * id;
  }
  set_path("models");
  put(database, records, MATRICES * VARIANTS);
  char *json = listed(NULL, NULL);
  assert_null(strstr(json, "predicted"));
  free(json);
  put_model(records, MATRICES * VARIANTS);
  command c = RUN(0, "db", "candidates", "--db", database, "--json");
  assert_contains(c.err, "training");
  assert_json_at(c.out, "$.trained_at", "1700000000");
  for (int i = 0; i < MATRICES; i++) {
    assert_row(c.out, VARIANTS * i, "variant", ROW16);
    char path[64];
    snprintf(path, sizeof path, "$.candidates[%d].chosen_by", VARIANTS * i);
    char *chosen_by = json_at(c.out, path);
    assert_contains(chosen_by, "predicted");
    assert_null(strstr(chosen_by, "rules"));
    free(chosen_by);
    assert_row(c.out, VARIANTS * i + 1, "chosen_by", "rules, other problems");
  }
}

TEST(nothing_measured_is_no_error) {
  set_path("empty");
  put(database, NULL, 0);
  FREED char *json = listed(NULL, NULL);
  assert_null(json_at(json, "$.device_class"));
  assert_null(json_at(json, "$.candidates[0]"));
  command c = RUN(1, "db", "candidates", "--db", "no-such.db");
  assert_contains(c.err, "no-such.db");
}

/* Measurements that are unlike others still give a list. */
TEST(odd_measurements_are_listed) {
  wlmi_measurement_record odd[7];
  enum { ODD = sizeof odd / sizeof *odd };
  for (int i = 0; i < ODD; i++) odd[i] = measured("odd", i, ROW128, 10);
  odd[0].stats.nnz = odd[0].stats.longest = 0;
  odd[0].stats.cv = 0;
  odd[1].failed = 1;
  odd[1].time_ps = odd[1].spread_ps = 0;
  odd[1].reason = "no";
  odd[2].prepare_ps = 1;
  odd[3].problem = "of another version";
  odd[4].stats.cv = 400;
  odd[4].stats.rows = 1000000000;
  odd[4].stats.nnz = 100000000000;
  odd[5].clock = WLMI_CLOCK_COLD;
  odd[6].time_ps = INT64_MAX;
  odd[6].made_at = 253402300799;
  odd[6].matrix_name = NULL;
  for (int i = 0; i <= ODD; i++) { /* each measurement alone, then all together */
    char name[16];
    snprintf(name, sizeof name, "odd-%d", i);
    set_path(name);
    put(database, i < ODD ? &odd[i] : odd, i < ODD ? 1 : ODD);
    FREED char *json = listed(NULL, NULL);
    assert_json_at(json, "$.device_class", "host/x86_64/A <b>processor</b>/2");
  }
}

GROUP(home_begin, folder_end)
