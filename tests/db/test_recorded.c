/* Recorded problems in a store: added and removed, merged and exported like measurements, checked for damage, and
 * absent from files of older versions. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/problem/size.h"
#include "core/records/lines.h"
#include "core/records/record.h"
#include "core/synth/input.h"
#include "db/database.h"
#include "db/diff.h"
#include "db/interchange.h"
#include "support/db_fixture.h"
#include "support/test.h"

/* The i-th sample: no two are equal, and they have three device classes. */
static wlmi_recorded sample(int64_t i) {
  static char classes[3][16], problems[3][48];
  const int64_t k = i % 3;
  const wlmi_measurement_record record = sample_measurement(i);
  snprintf(classes[k], sizeof classes[k], "class '%lld'", (long long)k);
  snprintf(problems[k], sizeof problems[k], "op=\"%lld\"; DROP TABLE recorded", (long long)k);
  return (wlmi_recorded){classes[k], record.stats, problems[k], i};
}

static wlm_store *open_store(const char *name, wlmi_store_mode mode) {
  GET(wlm_store *, store, wlmi_store_open(folder_file(&folder, name), mode, &store));
  return store;
}

static wlm_store *store_of(const char *name, int64_t begin, int64_t end) {
  wlm_store *store = open_store(name, WLMI_STORE_WRITE);
  for (int64_t i = begin; i < end; i++) {
    const wlmi_recorded recorded = sample(i);
    assert_status(WLM_OK, wlmi_store_record(store, &recorded, 1));
  }
  return store;
}

static int64_t count_of(wlm_store *store, const char *device_class) {
  wlmi_recorded *list;
  GET(int64_t, count, wlmi_store_load_recorded(store, device_class, &list, &count));
  wlmi_recorded_free(list, count);
  return count;
}

TEST(each_problem_is_stored_once) {
  OWNED(wlm_store) *store = store_of("a.db", 0, 20);
  wlmi_recorded *list;
  wlmi_store_close(store_of("a.db", 10, 20)); /* the same problems again */
  assert_int_equal(count_of(store, NULL), 20);
  assert_int_equal(count_of(store, "class '1'"), 7);
  assert_int_equal(count_of(store, "another"), 0);
  GET(int64_t, count, wlmi_store_load_recorded(store, NULL, &list, &count));
  char last[WLMI_HASH_HEX] = "", id[WLMI_HASH_HEX];
  for (int64_t i = 0; i < count; i++) {
    const wlmi_recorded expected = sample(list[i].n);
    assert_string_equal(list[i].device_class, expected.device_class);
    assert_string_equal(list[i].problem, expected.problem);
    assert_memory_equal(&list[i].stats, &expected.stats, sizeof expected.stats);
    assert_status(WLM_OK, wlmi_recorded_id(&list[i], id));
    assert_true(strcmp(last, id) < 0);
    strcpy(last, id);
  }
  assert_status(WLM_OK, wlmi_store_forget(store, &list[3]));
  assert_status(WLM_OK, wlmi_store_forget(store, &list[3]));
  assert_int_equal(count_of(store, NULL), 19);
  wlmi_recorded_free(list, count);
  wlmi_store_close(store);

  const wlmi_recorded one = sample(50);
  store = open_store("a.db", WLMI_STORE_READ);
  assert_fails(WLM_ERR_INVALID_ARGUMENT, wlmi_store_record(store, &one, 1), "opened for reading only");
  assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_store_forget(store, &one));
}

/* Recording stores the whole list or nothing; a list with an impossible problem is refused. */
TEST(impossible_ones_are_refused) {
  OWNED(wlm_store) *store = store_of("a.db", 0, 0);
  static const char *const says[] = {"recorded must", "problem must", "n must", "rows must", "longest must", "cv must"};
  for (int i = 0; i < 6; i++) {
    wlmi_recorded two[2] = {sample(1), sample(2)};
    if (i == 0) two[1].device_class = "";
    if (i == 1) two[1].problem = NULL;
    if (i == 2) two[1].n = -1;
    if (i == 3) two[1].stats.rows = -1;
    if (i == 4) two[1].stats.longest = two[1].stats.nnz + 1;
    if (i == 5) two[1].stats.cv = -0.5;
    assert_status(WLM_ERR_INVALID_ARGUMENT, wlmi_store_record(store, two, 2));
    assert_contains(wlm_error_detail(), says[i]);
  }
  assert_int_equal(count_of(store, NULL), 0);
}

/* Lines, the database and pins have one rule. Larger sizes overflowed when a matrix was to be made from them. */
TEST(sizes_near_2_to_63_are_refused) {
  static const int64_t sizes[] = {WLMI_MOST_SIZE, WLMI_MOST_SIZE + 1, INT64_MAX};
  OWNED(wlm_store) *store = store_of("a.db", 0, 0);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int field = 0; field < 5; field++) {
      wlmi_recorded recorded = sample(1);
      wlmi_measurement_record measurement = sample_measurement(1);
      wlmi_pin_record pin = {"class", "v1 rows=14 mean=6 cv=0", recorded.problem, sizes[i], "row_naive"};
      wlm_stats *s = &recorded.stats;
      if (field == 0) s->rows = sizes[i];
      if (field == 1) s->cols = sizes[i];
      if (field == 2) s->nnz = sizes[i];
      if (field == 3) s->nnz = s->longest = sizes[i];
      if (field == 4) recorded.n = sizes[i];
      measurement.stats = *s;
      measurement.n = recorded.n;
      wlmi_content content = {.records = &measurement, .count = 1};
      HELD(wlmi_text) text = {0};
      char name[WLMI_STAND_IN_NAME];
      const int is_good = !i;
      assert_status(is_good ? WLM_OK : WLM_ERR_INVALID_ARGUMENT, wlmi_store_record(store, &recorded, 1));
      if (!is_good) assert_contains(wlm_error_detail(), "must be an integer from 0 to 576460752303423487");
      assert_status(is_good ? WLM_OK : WLM_ERR_INVALID_ARGUMENT, wlmi_measurement_check(&measurement));
      assert_status(is_good ? WLM_OK : WLM_ERR_INVALID_ARGUMENT, wlmi_pin_check(&pin));
      assert_status(WLM_OK, wlmi_lines_write(&content, &text));
      assert_status(is_good ? WLM_OK : WLM_ERR_PARSE, import_string(store, text.data, "x", NULL));
      wlmi_text_release(&text);
      content = (wlmi_content){.recorded = &recorded, .recorded_count = 1};
      assert_status(WLM_OK, wlmi_lines_write(&content, &text));
      assert_status(is_good ? WLM_OK : WLM_ERR_PARSE, import_string(store, text.data, "x", NULL));
      if (!is_good) assert_contains(wlm_error_detail(), "x:2: ");
      if (is_good) wlmi_stand_in_name(s, name); /* does not overflow */
    }
}

TEST(export_and_import_keep_them) {
  OWNED(wlm_store) *a = store_of("a.db", 0, 30), *b = store_of("b.db", 20, 50), *c = store_of("c.db", 0, 0);
  const wlmi_measurement_record record = sample_measurement(3);
  assert_status(WLM_OK, wlmi_store_put(a, &record, 1));
  WLM_FREED char *text_a = export_of(a), *text_b = export_of(b);
  assert_contains(text_a, "\n{\"recorded\":\"class '1'\",\"fingerprint\":\"");
  GET(int64_t, added, import_string(c, text_a, "a", &added));
  WLM_FREED char *text_c = export_of(c);
  assert_string_equal(text_a, text_c);
  assert_int_equal(added, 1);
  assert_status(WLM_OK, import_string(a, text_b, "b", &added));
  assert_status(WLM_OK, import_string(b, text_a, "a", &added));
  WLM_FREED char *ab = export_of(a), *ba = export_of(b);
  assert_string_equal(ab, ba);
  assert_int_equal(count_of(a, NULL), 50);
}

TEST(malformed_lines_are_named) {
  static const struct {
    const char *from, *to, *says;
  } cases[] = {{"{\"recorded\":\"class '0'\"", "{\"recorded\":\"\"", "recorded must be a string that is not empty"},
               {"{\"recorded\":\"class '0'\"", "{\"recorded\":7", "recorded must be a string that is not empty"},
               {"\"rows\":", "\"rows\":-", "rows must be an integer from 0 to 576460752303423487"},
               {",\"n\":0}", "}", "n is missing"},
               {",\"n\":0}", ",\"n\":0,\"n\":0}", "duplicate object key near '\"n\"'"},
               {",\"n\":0}", ",\"n\":0,\"time_ps\":1}", "unknown key time_ps"},
               {",\"n\":0}", ",\"n\":0,\"id\":\"x\"}", "unknown key id"},
               {",\"n\":0}", ",\"n\":0.5}", "n must be"},
               {"\"longest\":", "\"longest\":9", "longest must not be greater than nnz"}};
  OWNED(wlm_store) *store = store_of("a.db", 0, 1), *other = store_of("b.db", 0, 0);
  WLM_FREED char *text = export_of(store);
  char wrong[2048];
  int64_t added;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *at = strstr(text, cases[i].from);
    if (!at) fail_msg("no %s in %s", cases[i].from, text);
    snprintf(wrong, sizeof wrong, "%.*s%s%s", (int)(at - text), text, cases[i].to, at + strlen(cases[i].from));
    assert_fails(WLM_ERR_PARSE, import_string(other, wrong, "set", &added), "set:2: ");
    assert_contains(wlm_error_detail(), cases[i].says);
  }
  assert_int_equal(count_of(other, NULL), 0);
}

TEST(files_merge_and_differ) {
  wlmi_content contents[2];
  wlmi_store_close(store_of("a.db", 0, 30));
  wlmi_store_close(store_of("b.db", 20, 45));
  const char *a = in_folder("a.db"), *b = in_folder("b.db"), *out = in_folder("out.db");
  GET(int64_t, measurements, wlmi_store_merge_files((const char *const[]){a, b}, 2, out, NULL, &measurements));
  wlm_store *store = open_store("out.db", WLMI_STORE_WRITE);
  assert_int_equal(count_of(store, NULL), 45);
  int64_t removed;
  assert_status(WLM_OK, wlmi_store_prune(store, 0, &removed)); /* pruning keeps recorded problems */
  assert_int_equal(count_of(store, NULL), 45);
  wlmi_store_close(store);
  for (int i = 0; i < 2; i++) {
    store = open_store(i ? "b.db" : "a.db", WLMI_STORE_READ);
    assert_status(WLM_OK, wlmi_content_load(store, &contents[i]));
    wlmi_store_close(store);
  }
  HOLD(wlmi_diff, diff, wlmi_diff_make(&contents[0], &contents[1], &diff));
  assert_int_equal(diff.recorded.only_a, 20);
  assert_int_equal(diff.recorded.only_b, 15);
  for (int i = 0; i < 2; i++) wlmi_content_release(&contents[i]);
}

TEST(damage_is_found_and_repaired) {
  static const char *const changes[] = {"UPDATE recorded SET n = n + 1 WHERE n = 5",
                                        "UPDATE recorded SET class = 'x' WHERE n = 5",
                                        "UPDATE recorded SET cv = cv * 1.0000000000000004 + 1e-9 WHERE n = 5"};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    char name[32];
    wlmi_recorded *list;
    int64_t count;
    HELD(wlmi_text) faults = {0}, kept_as = {0};
    snprintf(name, sizeof name, "%d.db", (int)i);
    wlmi_store_close(store_of(name, 0, 20));
    run_sql(in_folder(name), changes[i]);
    wlm_store *store = open_store(name, WLMI_STORE_READ);
    assert_fails(WLM_ERR_DATABASE, wlmi_store_load_recorded(store, NULL, &list, &count), "is damaged");
    assert_null(list);
    assert_status(WLM_ERR_DATABASE, wlmi_store_check(store, &faults));
    wlmi_store_close(store);
    wlmi_text_release(&faults);
    GET(wlmi_store_repair_result, result, wlmi_store_repair(folder_file(&folder, name), &faults, &kept_as, &result));
    store = open_store(name, WLMI_STORE_READ);
    assert_int_equal(count_of(store, NULL), 19);
    wlmi_store_close(store);
  }
}

/* A file of schema version 2 can be read, even if it is read-only, and has no recorded problems. The first writer
 * adds their table. */
TEST(older_files_are_read) {
  wlmi_schema second = wlmi_schema_tuned;
  wlm_store *store;
  const wlmi_measurement_record record = sample_measurement(1);
  store = open_store("now.db", WLMI_STORE_WRITE);
  assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  wlmi_store_close(store);
  second.version = 2;
  run_sql(in_folder("now.db"), "DROP TABLE recorded; PRAGMA user_version = 2");
  GET(sqlite3 *, db, wlmi_database_open(folder_file(&folder, "now.db"), 0, &second, &db));
  sqlite3_close(db);

  wlmi_text faults = {0};
  store = open_store("now.db", WLMI_STORE_READ);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  assert_int_equal(counts.measurements, 1);
  assert_int_equal(count_of(store, NULL), 0);
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  wlmi_store_close(store);
  assert_status(WLM_OK, wlmi_database_open(folder_file(&folder, "now.db"), 0, &wlmi_schema_tuned, &db));
  GET(int64_t, version, wlmi_sqlite_integer(db, "PRAGMA user_version", &version));
  assert_int_equal(version, 2); /* reading does not migrate the file */
  sqlite3_close(db);

  store = store_of("now.db", 0, 2);
  assert_int_equal(count_of(store, NULL), 2);
  wlmi_store_close(store);
  assert_fails(WLM_ERR_DATABASE_VERSION, wlmi_database_open(folder_file(&folder, "now.db"), 0, &second, &db),
               "found schema version 3, expected 2");
  run_sql(in_folder("now.db"), "PRAGMA user_version = 1"); /* version 1 cannot be read, because it has no prepare_ps */
  assert_status(WLM_ERR_DATABASE_VERSION, wlmi_store_open(folder_file(&folder, "now.db"), WLMI_STORE_READ, &store));
}

/* Kills a process that records lists of ten problems. Each list is stored completely or not at all, and the file is
 * undamaged. */
TEST(kills_lose_no_complete_list) {
  enum { KILLS = 25, TENS = 40 };
  HELD(wlmi_text) faults = {0};
  int64_t most = 0;
  for (int i = 0; i < KILLS; i++) {
    int how;
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
      for (int64_t ten = 0; ten < TENS; ten++) {
        wlmi_recorded list[10];
        OWNED(wlm_store) *store = NULL;
        for (int64_t k = 0; k < 10; k++) list[k] = sample((i * TENS + ten) * 10 + k);
        if (wlmi_store_open(folder_file(&folder, "killed.db"), WLMI_STORE_WRITE, &store) != WLM_OK) _exit(1);
        if (wlmi_store_record(store, list, 10) != WLM_OK) _exit(2);
      }
      pause();
    }
    usleep((useconds_t)(i * 3000));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    if (access(folder_file(&folder, "killed.db"), F_OK)) continue; /* killed before it created the file */
    OWNED(wlm_store) *store = store_of("killed.db", 0, 0);
    const int64_t count = count_of(store, NULL);
    assert_int_equal(count % 10, 0);
    assert_true(count >= most);
    most = count;
    assert_status(WLM_OK, wlmi_store_check(store, &faults));
  }
  print_message("%lld were recorded in spite of %d kills\n", (long long)most, KILLS);
}

EACH(folder_begin, folder_end)
