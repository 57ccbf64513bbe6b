/* Repair: undamaged content is kept, the damaged file stays beside it byte for byte, and no damaged row is copied. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/db_fixture.h"
#include "support/test.h"

enum { ROWS = 360, PAGE = 4096 };
static unsigned char *whole; /* the bytes of an undamaged database */
static size_t whole_size;

static const wlmi_pin_record pin = {"c", "v1 rows=9 mean=6 cv=1", "p", 32, "x"};
static const wlmi_model_record model = {"m", 5, "what was learned", 16};

static int setup(void **state) {
  folder_begin(state);
  const char *path = folder_file(&folder, "tuned.db");
  wlm_store *store;
  put_samples(path, ROWS);
  if (wlmi_store_open(path, WLMI_STORE_WRITE, &store) != WLM_OK) return -1;
  if (wlmi_store_pin(store, &pin) != WLM_OK) return -1;
  if (wlmi_store_put_model(store, "c", &model) != WLM_OK) return -1;
  wlmi_store_close(store);
  whole = read_whole(path, &whole_size);
  return 0;
}

static int teardown(void **state) {
  free(whole);
  return folder_end(state);
}

/* Opens and checks the store, and counts its measurements. */
static int64_t count_right(const char *path) {
  HELD(wlmi_text) faults = {0};
  int64_t count = 0;
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, each_measurement(store, NULL, must_be_sample, &count));
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  return count;
}

static void assert_bytes(const char *path, const unsigned char *expected, size_t size) {
  size_t found;
  FREED unsigned char *bytes = read_whole(path, &found);
  assert_int_equal(found, size);
  assert_memory_equal(bytes, expected, size);
}

static wlmi_store_repair_result result; /* of the last repair */

/* Repairs and checks all that the repair promises. Returns the number of measurements kept, or -1 if nothing could
 * be read and the file is unchanged. */
static int64_t repair(const char *path, const unsigned char *before, size_t size) {
  HELD(wlmi_text) faults = {0}, kept_as = {0};
  int64_t kept = -1;
  wlm_status status = wlmi_store_repair(path, &faults, &kept_as, &result);
  if (status != WLM_OK) {
    assert_true(status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION || status == WLM_ERR_NOT_FOUND);
    assert_bytes(path, before, size);
  } else {
    kept = count_right(path);
    if (kept_as.size) {
      assert_int_equal(result.kept, kept);
      assert_bytes(kept_as.data, before, size);
      unlink(kept_as.data);
    } else {
      assert_int_equal(kept, ROWS);
    }
  }
  return kept;
}

/* Overwrites each page of the file in turn. Only the rows on that page are lost. */
TEST(one_bad_page_loses_only_its_rows) {
  const char *path = folder_file(&folder, "bad.db");
  uint64_t seed = 3;
  int readable = 0, mended = 0;
  const size_t pages = whole_size / PAGE;
  for (size_t page = 0; page < pages; page++) {
    FREED unsigned char *bytes = malloc(whole_size);
    memcpy(bytes, whole, whole_size);
    for (size_t i = page ? 0 : 100; i < PAGE; i++) bytes[page * PAGE + i] = (unsigned char)draw(&seed);
    write_whole(path, bytes, whole_size);
    int64_t kept = repair(path, bytes, whole_size);
    readable += kept >= 0;
    mended += kept > ROWS * 9 / 10;
  }
  print_message("of %zu pages, %d left a file that could be mended, %d with nine tenths of it or more\n", pages,
                readable, mended);
  assert_true(pages > 25);
  assert_true(readable > (int)pages * 8 / 10);
  assert_true(mended > (int)pages * 8 / 10);
}

/* A truncated file. A longer rest keeps more measurements. If the schema itself is lost, the message says so instead
 * of naming `db check`. */
TEST(truncated_files) {
  const char *path = folder_file(&folder, "cut.db");
  int64_t most = 0;
  for (size_t size = 100; size < whole_size; size = size < PAGE ? PAGE : size + 3 * PAGE + 1000) {
    write_whole(path, whole, size);
    const int64_t kept = repair(path, whole, size);
    if (size < PAGE) {
      assert_int_equal(kept, -1);
      assert_contains(wlm_error_detail(), "nothing of it can be read any more; move it away");
    } else {
      assert_true(kept >= 0);
    }
    if (kept > most) most = kept;
  }
  print_message("%lld of %d kept at most\n", (long long)most, ROWS);
  assert_true(most > ROWS / 2);
}

TEST(rows_with_flipped_bytes_are_not_kept) {
  const char *path = folder_file(&folder, "bad.db");
  uint64_t seed = 11;
  for (int round = 0; round < 40; round++) {
    FREED unsigned char *bytes = malloc(whole_size);
    memcpy(bytes, whole, whole_size);
    for (int flips = 0; flips < 20; flips++)
      bytes[100 + draw(&seed) % (whole_size - 100)] ^= (unsigned char)(1u << draw(&seed) % 8);
    write_whole(path, bytes, whole_size);
    repair(path, bytes, whole_size);
  }
}

TEST(changed_values_are_left_out_and_pins_kept) {
  static const char *const changes[] = {"UPDATE measurement SET time_ps = time_ps + 1 WHERE n = 32 AND failed = 0",
                                        "UPDATE matrix SET cv = cv + 1 WHERE rows = 1000",
                                        "DELETE FROM variant WHERE name LIKE '%cf=1,%'",
                                        "INSERT INTO pin VALUES ('c', 'somewhere', 'p', 1, 'y')"};
  static const int64_t least[] = {ROWS / 2, ROWS / 2, ROWS / 2, ROWS};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const char *path = folder_file(&folder, "changed.db");
    wlmi_pin_record *pins;
    wlmi_model_record *models;
    int64_t count;
    size_t size;
    write_whole(path, whole, whole_size);
    run_sql(path, changes[i]);
    FREED unsigned char *bytes = read_whole(path, &size);
    count = repair(path, bytes, size);
    assert_in_range(count, least[i], i == 3 ? ROWS : ROWS - 1);
    assert_int_equal(result.lost, ROWS - count); /* each is counted once, though they are read in both directions */
    OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
    assert_status(WLM_OK, wlmi_store_load_pins(store, NULL, &pins, &count));
    assert_int_equal(count, 1);
    assert_string_equal(pins[0].variant, pin.variant);
    wlmi_pins_free(pins, count);
    assert_status(WLM_OK, wlmi_store_load_models(store, "c", &models, &count));
    assert_int_equal(count, 1);
    assert_true(models->made_at == model.made_at && models->size == model.size);
    assert_memory_equal(models->data, model.data, model.size);
    wlmi_model_records_free(models, count);
  }
}

/* A second repair must not overwrite the damaged file that the first one kept. */
TEST(no_damaged_file_is_overwritten) {
  const char *path = folder_file(&folder, "again.db");
  for (int i = 0; i < 3; i++) {
    HELD(wlmi_text) faults = {0}, kept_as = {0};
    static const char *const names[] = {"again.db.damaged", "again.db.damaged-2", "again.db.damaged-3"};
    FREED unsigned char *bytes = malloc(whole_size);
    memcpy(bytes, whole, whole_size);
    memset(bytes + (size_t)(20 + i) * PAGE, 0xee, PAGE);
    write_whole(path, bytes, whole_size);
    assert_status(WLM_OK, wlmi_store_repair(path, &faults, &kept_as, &result));
    assert_string_equal(kept_as.data, in_folder(names[i]));
    assert_bytes(kept_as.data, bytes, whole_size);
  }
}

TEST(foreign_files_are_not_repaired) {
  static const char garbage[] = "this is no database at all, and it has to stay as it is";
  const char *path = folder_file(&folder, "notes.txt");
  wlmi_text faults = {0}, kept_as = {0};
  write_whole(path, garbage, sizeof garbage);
  assert_status(WLM_ERR_DATABASE, wlmi_store_repair(path, &faults, &kept_as, &result));
  assert_bytes(path, (const unsigned char *)garbage, sizeof garbage);
  assert_int_equal(kept_as.size, 0);
  wlmi_text_release(&kept_as);
}

/* Kills repairs. Afterwards the path holds the damaged file or the repaired one, and the next repair gives the same
 * result. */
TEST(a_killed_repair_loses_nothing) {
  enum { KILLS = 40, BAD_PAGE = 20 };
  const char *path = folder_file(&folder, "killed.db");
  FREED unsigned char *bytes = malloc(whole_size);
  uint64_t seed = 21;
  memcpy(bytes, whole, whole_size);
  memset(bytes + (size_t)BAD_PAGE * PAGE, 0xee, PAGE);
  write_whole(path, bytes, whole_size);
  const int64_t expected = repair(path, bytes, whole_size);
  int finished = 0;
  for (int i = 0; i < KILLS; i++) {
    HELD(wlmi_text) faults = {0}, kept_as = {0};
    struct timespec wait = {0, (long)(draw(&seed) % 150000000)};
    write_whole(path, bytes, whole_size);
    pid_t child = fork();
    if (child == 0) _exit(wlmi_store_repair(path, &faults, &kept_as, &result) != WLM_OK);
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    int ended;
    assert_int_equal(child, waitpid(child, &ended, 0));
    finished += WIFEXITED(ended);
    assert_status(WLM_OK, wlmi_store_repair(path, &faults, &kept_as, &result));
    assert_int_equal(count_right(path), expected);
  }
  print_message("%d of %d repairs were killed\n", KILLS - finished, KILLS);
}

/* The link stays, and the damaged file is kept beside its target. */
TEST(the_target_of_a_symbolic_link_is_repaired) {
  struct stat info;
  const char *target = in_folder("elsewhere");
  assert_int_equal(mkdir(target, 0700), 0);
  target = in_folder("elsewhere/bad.db");
  const char *link = in_folder("link.db");
  assert_int_equal(symlink("elsewhere/bad.db", link), 0);
  FREED unsigned char *bytes = malloc(whole_size);
  memcpy(bytes, whole, whole_size);
  memset(bytes + whole_size - PAGE, 0xa5, PAGE);
  write_whole(target, bytes, whole_size);
  HELD(wlmi_text) faults = {0}, kept_as = {0};
  GET(wlmi_store_repair_result, result, wlmi_store_repair(link, &faults, &kept_as, &result));
  assert_true(result.kept > 0);
  assert_contains(kept_as.data, "/elsewhere/bad.db.damaged");
  assert_bytes(kept_as.data, bytes, whole_size);
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(count_right(target), result.kept);
}

EACH(setup, teardown)
