/* Damaged tuning databases: every damage gives an error, no damaged row is returned as valid, and the file stays as it
 * was. */

#include "db/measurement_set.h"
#include "support/db_fixture.h"
#include "support/test.h"

enum { ROWS = 60 };
static const char sample_class[] = "cuda/sm_90/NVIDIA H200/132";
static unsigned char *whole; /* the bytes of an undamaged database */
static size_t whole_size;

static int setup(void **state) {
  folder_begin(state);
  const char *path = folder_file(&folder, "good.db");
  put_samples(path, ROWS);
  whole = read_whole(path, &whole_size);
  return 0;
}

FIXTURE(teardown) {
  free(whole);
  folder_remove(&folder);
  return 0;
}

/* Selection does not verify ids, so it may read a changed value. Whatever it reads must still be a valid record. */
static void selection_reads_what_makes_sense(wlm_store *store) {
  HELD(wlmi_measurement_set) set = {0};
  const wlm_status status = wlmi_measurement_set_add(&set, store, sample_class);
  assert_true(status == WLM_OK || status == WLM_ERR_DATABASE || status == WLM_ERR_IO);
  assert_in_range(set.count, 0, status == WLM_OK ? ROWS : 0);
  for (int64_t i = 0; i < set.count; i++) {
    const wlmi_measurement_record *r = &set.records[i];
    assert_true(r->failed ? r->time_ps == 0 : r->time_ps > 0);
    assert_true(*r->variant && !wlmi_stats_fault(&r->stats));
  }
}

/* Reads the file, whatever its state. Returns 1 if opening, reading or the check found a fault. */
static int fault_noticed(const char *path) {
  wlm_store *store;
  HELD(wlmi_text) faults = {0};
  int64_t count = 0;
  wlm_status status = wlmi_store_open(path, WLMI_STORE_READ, &store);
  if (status != WLM_OK) {
    assert_true(status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION || status == WLM_ERR_NOT_FOUND ||
                status == WLM_ERR_IO);
    assert_contains(wlm_error_detail(), folder.path);
    return 1;
  }
  wlm_status read = each_measurement(store, NULL, must_be_sample, &count);
  wlm_status check = wlmi_store_check(store, &faults);
  selection_reads_what_makes_sense(store);
  wlmi_store_close(store);
  if (check == WLM_OK && (read != WLM_OK || count != ROWS))
    fail_msg("the check found nothing, but reading gave %lld rows and %s", (long long)count, wlm_status_name(read));
  if (check != WLM_OK) assert_true(faults.size > 0);
  return check != WLM_OK;
}

TEST(the_whole_file_is_clean) { assert_int_equal(0, fault_noticed(folder_file(&folder, "good.db"))); }

TEST(every_truncation_is_noticed) {
  const char *path = folder_file(&folder, "cut.db");
  for (size_t size = 0; size < whole_size; size += size < 4096 ? 61 : 509) {
    write_whole(path, whole, size);
    if (!fault_noticed(path)) fail_msg("cut to %zu of %zu bytes without notice", size, whole_size);
    size_t after;
    FREED unsigned char *kept = read_whole(path, &after);
    assert_int_equal(after, size);
    assert_memory_equal(kept, whole, size);
  }
}

/* A flipped byte may hit free space or a spare header field; then nothing is wrong. All records that are read must
 * be correct. */
TEST(flipped_bytes_never_give_wrong_records) {
  const char *path = folder_file(&folder, "flipped.db");
  FREED unsigned char *copy = malloc(whole_size);
  uint64_t seed = 7;
  int noticed = 0;
  for (int round = 0; round < 400; round++) {
    memcpy(copy, whole, whole_size);
    for (int flips = 0; flips <= round % 4; flips++)
      copy[draw(&seed) % whole_size] ^= (unsigned char)(1 + draw(&seed) % 255);
    write_whole(path, copy, whole_size);
    noticed += fault_noticed(path);
  }
  print_message("%d of 400 damaged files were noticed, the others hit unused bytes\n", noticed);
  assert_true(noticed > 100);
}

/* Damage that SQLite cannot see: a value changed in place, still well-formed. */
TEST(changed_values_are_noticed) {
  static const char *const changes[] = {
      "UPDATE measurement SET time_ps = time_ps - 1 WHERE id = (SELECT id FROM measurement WHERE NOT failed LIMIT 1)",
      "UPDATE matrix SET cv = cv + 1e-15 WHERE rows = 1001",
      "UPDATE device SET memory_bytes = 1",
      "UPDATE variant SET name = 'row_naive' WHERE id = (SELECT variant FROM measurement LIMIT 1)",
      "UPDATE device SET class = 'another'",
      "DELETE FROM variant",
      "PRAGMA ignore_check_constraints = ON; UPDATE measurement SET time_ps = -1",
      "UPDATE matrix SET fingerprint = replace(fingerprint, '0', 'x')",
      "DROP TABLE matrix",
  };
  const char *path = folder_file(&folder, "changed.db");
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    write_whole(path, whole, whole_size);
    run_sql(path, changes[i]);
    if (!fault_noticed(path)) fail_msg("not noticed: %s", changes[i]);
  }
}

TEST(garbage_is_refused_and_kept) {
  const char *path = folder_file(&folder, "garbage.db");
  unsigned char garbage[9000];
  uint64_t seed = 3;
  for (int round = 0; round < 50; round++) {
    size_t size = 1 + draw(&seed) % sizeof garbage, after;
    for (size_t i = 0; i < size; i++) garbage[i] = (unsigned char)draw(&seed);
    if (round % 2) memcpy(garbage, whole, size < 100 ? size : 100); /* garbage behind a valid header */
    write_whole(path, garbage, size);
    for (int mode = WLMI_STORE_READ; mode <= WLMI_STORE_WRITE; mode++) {
      wlm_store *store;
      wlm_status status = wlmi_store_open(path, (wlmi_store_mode)mode, &store);
      if (status != WLM_ERR_DATABASE) fail_msg("%zu bytes: %s", size, wlm_status_name(status));
      assert_contains(wlm_error_detail(), path);
      assert_contains(wlm_error_detail(), "move it away");
    }
    FREED unsigned char *kept = read_whole(path, &after);
    assert_int_equal(after, size);
    assert_memory_equal(kept, garbage, size);
  }
}

GROUP(setup, teardown)
