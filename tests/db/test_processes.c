/* Many processes, killed processes and full disks: a put that returned is stored for good, any other leaves nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "db/database.h"
#include "db/store_state.h"
#include "support/db_fixture.h"
#include "support/test.h"

static int setup(void **state) {
  folder_begin(state);
  folder_file(&folder, "sub/tuned.db");
  return 0;
}

/* Uses a file system in memory, so that hundreds of kills do not wait for a disk. */
static int setup_in_memory(void **state) {
  folder_begin_in_memory(state);
  folder_file(&folder, "sub/tuned.db");
  return 0;
}

static int put_number(wlm_store *store, int64_t i) {
  wlmi_measurement_record record = sample_measurement(i);
  wlm_status status = wlmi_store_put(store, &record, 1);
  if (status != WLM_OK) fprintf(stderr, "put %lld: %s\n", (long long)i, wlm_error_detail());
  return status == WLM_OK;
}

typedef struct marks {
  char *seen; /* indexed by the number of the sample */
  int64_t size, count;
} marks;

static wlm_status mark(void *user, const char *id, const wlmi_measurement_record *record) {
  marks *all = user;
  int64_t number = record->made_at - 1700000000;
  (void)id;
  if (number < 0 || number >= all->size || all->seen[number]) return WLM_ERR_INTERNAL;
  all->seen[number] = 1;
  all->count++;
  return WLM_OK;
}

/* Reads all measurements of the store and checks it. */
static marks marks_of(const char *path, int64_t size) {
  wlmi_text faults = {0};
  marks all = {calloc((size_t)size, 1), size, 0};
  OWN(wlm_store, store, wlmi_store_open(path, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, each_measurement(store, NULL, mark, &all));
  assert_status(WLM_OK, wlmi_store_check(store, &faults));
  return all;
}

enum { WRITERS = 8, EACH = 40, SHARED = 20 };

/* Waits until the pipe is closed, then stores measurements of its own and the ones that all writers store. */
static void write_as_child(int gate, int which) {
  wlm_store *store;
  char byte;
  if (read(gate, &byte, 1) != 0) _exit(1);
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_OK) {
    fprintf(stderr, "open: %s\n", wlm_error_detail());
    _exit(2);
  }
  for (int64_t i = 0; i < EACH; i++)
    if (!put_number(store, SHARED + which * EACH + i)) _exit(3);
  for (int64_t i = 0; i < SHARED; i++)
    if (!put_number(store, i)) _exit(4);
  wlmi_store_close(store);
  _exit(0);
}

TEST_BETWEEN(eight_processes_lose_nothing, setup, folder_end) {
  int gate[2], running = WRITERS;
  assert_int_equal(0, pipe(gate));
  for (int w = 0; w < WRITERS; w++)
    if (fork() == 0) {
      close(gate[1]);
      write_as_child(gate[0], w);
    }
  close(gate[0]);
  close(gate[1]); /* the file does not exist yet, so all eight try to create it at once */
  while (running) {
    int result;
    pid_t ended = waitpid(-1, &result, WNOHANG);
    if (ended > 0) {
      running--;
      assert_true(WIFEXITED(result));
      assert_int_equal(WEXITSTATUS(result), 0);
    }
    wlm_store *store; /* the parent reads meanwhile */
    wlmi_store_counts counts;
    wlm_status status = wlmi_store_open(folder.file, WLMI_STORE_READ, &store);
    if (status == WLM_ERR_NOT_FOUND) continue;
    if (status == WLM_OK) status = wlmi_store_count(store, &counts);
    /* a reader does not wait long for the writers */
    if (status != WLM_OK && !strstr(wlm_error_detail(), "locked")) fail_msg("%s", wlm_error_detail());
    wlmi_store_close(store);
  }
  marks all = marks_of(folder.file, SHARED + WRITERS * EACH);
  assert_int_equal(all.count, SHARED + WRITERS * EACH);
  free(all.seen);
}

static sqlite3 *holder;
static char notice[512];

static void release_lock(void *user, wlm_log_level level, const char *message) {
  (void)user, (void)level;
  snprintf(notice, sizeof notice, "%s", message);
  assert_int_equal(SQLITE_OK, sqlite3_exec(holder, "COMMIT", NULL, NULL, NULL));
}

/* A reader does not wait long for a locked file. A writer does, and says what it waits for. */
TEST_BETWEEN(only_writers_wait_for_a_lock, setup, folder_end) {
  struct timespec begin, end;
  wlm_store *store;
  put_samples(folder.file, 3);
  assert_int_equal(SQLITE_OK, sqlite3_open(folder.file, &holder));
  assert_int_equal(SQLITE_OK, sqlite3_exec(holder, "BEGIN EXCLUSIVE", NULL, NULL, NULL));
  clock_gettime(CLOCK_MONOTONIC, &begin);
  assert_status(WLM_ERR_IO, wlmi_store_open(folder.file, WLMI_STORE_READ, &store));
  clock_gettime(CLOCK_MONOTONIC, &end);
  assert_contains(wlm_error_detail(), "locked");
  assert_true(end.tv_sec - begin.tv_sec < 30); /* a writer would wait for 60 seconds */
  wlm_set_log(release_lock, NULL, WLM_LOG_WARNING);
  assert_status(WLM_OK, wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store));
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  assert_contains(notice, folder.file, "another process keeps it locked");
  wlmi_store_close(store);
  sqlite3_close(holder);
}

/* fcntl of a file system that gives no locks. */
static int lock_nothing(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void *const argument = va_arg(list, void *);
  va_end(list);
  if (command != F_SETLK) return fcntl(file, command, argument);
  errno = ENOLCK;
  return -1;
}

/* That is no other process, and there is none to wait for. */
TEST_BETWEEN(a_file_system_without_locks, setup, folder_end) {
  sqlite3_vfs *const files = sqlite3_vfs_find(NULL);
  wlm_store *store;
  put_samples(folder.file, 3);
  *notice = 0;
  wlm_set_log(release_lock, NULL, WLM_LOG_WARNING);
  files->xSetSystemCall(files, "fcntl", (sqlite3_syscall_ptr)lock_nothing);
  const wlm_status status = wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store);
  files->xSetSystemCall(files, "fcntl", NULL);
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
  assert_fails(WLM_ERR_IO, status, "move the file to another file system");
  assert_string_equal(notice, "");
}

/* However few descriptors there are, the error says that there are too few. */
TEST_BETWEEN(too_few_descriptors, setup, folder_end) {
  struct rlimit usual, few;
  OWNED(wlm_store) *store = NULL;
  int refusals = 0;
  put_samples(folder.file, 3);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
  few = usual;
  for (few.rlim_cur = 3; !store; few.rlim_cur++) {
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const wlm_status status = wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store);
    if (status == WLM_OK) break;
    assert_status(WLM_ERR_IO, status);
    assert_contains(wlm_error_detail(), strerror(EMFILE));
    refusals++;
  }
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
  assert_true(refusals > 0);
}

static wlmi_schema impatient;
static int version_is_read, made_beside;

/* The first connection has read the version and begins its next statement: now a second connection creates the
 * tables, unless it has to wait. */
static int between_two_statements(unsigned event, void *user, void *statement, void *sql) {
  sqlite3 *second;
  (void)event, (void)user, (void)sql;
  if (!version_is_read || made_beside) {
    version_is_read |= !strcmp(sqlite3_sql(statement), "PRAGMA user_version");
    return 0;
  }
  made_beside = 1;
  if (wlmi_database_open(folder.file, WLMI_STORE_WRITE, &impatient, &second) == WLM_OK) sqlite3_close(second);
  return 0;
}

static int watch(sqlite3 *db, char **error, const void *api) {
  (void)error, (void)api;
  return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, between_two_statements, NULL);
}

/* Two connections found an empty file. The first must not report the tables that the second created as damage. */
TEST_BETWEEN(two_processes_create_one_file, setup, folder_end) {
  OWNED(wlm_store) *store = NULL;
  impatient = wlmi_schema_tuned;
  impatient.is_waited_for = 0;
  version_is_read = made_beside = 0;
  assert_int_equal(SQLITE_OK, sqlite3_auto_extension((void (*)(void))watch));
  const wlm_status status = wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store);
  sqlite3_cancel_auto_extension((void (*)(void))watch);
  assert_true(made_beside);
  assert_status(WLM_OK, status);
  assert_true(put_number(store, 1));
}

/* Stores numbered measurements; after each put that returned it sends the number through the pipe. */
static void put_until_killed(int out, int64_t first) {
  wlm_store *store;
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_OK) {
    fprintf(stderr, "open: %s\n", wlm_error_detail());
    _exit(2);
  }
  for (int64_t i = first;; i++)
    if (!put_number(store, i) || write(out, &i, sizeof i) != sizeof i) _exit(3);
}

/* One file, and the measurements that its writers acknowledged. The writing child is killed and replaced LIVES times.
 */
typedef struct history {
  char *acknowledged; /* indexed by the number of the sample */
  int64_t next, last, total;
  int lives, journals;
} history;

enum { LIVES = 20, FILES = 11, MOST = 1 << 16 };

/* Starts a child that stores measurements, and kills it after a random number of acknowledged ones and a random
 * pause. With none it is killed while it creates the file. Counting acknowledgements keeps the test independent of
 * the disk's speed. */
static void live_and_die(history *h, uint64_t *seed) {
  int out[2], result, killed = 0;
  char journal[sizeof folder.file + 16];
  assert_int_equal(0, pipe(out));
  pid_t child = fork();
  if (child == 0) {
    close(out[0]);
    put_until_killed(out[1], h->next);
  }
  close(out[1]);
  int64_t number, wanted = (int64_t)(draw(seed) % 9);
  struct timespec wait = {0, (long)(draw(seed) % 200000)};
  for (;; wanted--) {
    if (wanted == 0) {
      nanosleep(&wait, NULL);
      kill(child, SIGKILL);
      assert_int_equal(child, waitpid(child, &result, 0));
      assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
      snprintf(journal, sizeof journal, "%s-journal", folder.file);
      h->journals += !access(journal, F_OK);
      killed = 1;
    }
    if (read(out[0], &number, sizeof number) != sizeof number) break;
    assert_in_range(number, 0, MOST - 1);
    h->acknowledged[h->last = number] = 1;
    h->total++;
  }
  assert_true(killed); /* the child must not have ended by itself */
  close(out[0]);
  h->next = h->last + 2; /* the measurement after the last acknowledged one may be stored or not */
  h->lives++;
}

static void assert_all_acknowledged_are_there(const history *h) {
  if (h->last < 0) return; /* the file may not exist yet */
  marks all = marks_of(folder.file, MOST);
  for (int64_t i = 0; i < MOST; i++)
    if (h->acknowledged[i] && !all.seen[i])
      fail_msg("life %d: acknowledged measurement %lld is gone", h->lives, (long long)i);
  assert_in_range(all.count, h->total, h->total + h->lives);
  free(all.seen);
}

TEST_BETWEEN(a_killed_writer_loses_nothing_acknowledged, setup_in_memory, folder_end) {
  uint64_t seed = 5;
  int64_t total = 0;
  int journals = 0;
  for (int file = 0; file < FILES; file++) {
    char name[32];
    history h = {calloc(MOST, 1), 0, -1, 0, 0, 0};
    snprintf(name, sizeof name, "%d/tuned.db", file);
    folder_file(&folder, name);
    while (h.lives < LIVES) {
      live_and_die(&h, &seed);
      assert_all_acknowledged_are_there(&h);
    }
    total += h.total;
    journals += h.journals;
    free(h.acknowledged);
  }
  print_message("%lld puts acknowledged in %d lives, %d of which ended with a journal open\n", (long long)total,
                FILES * LIVES, journals);
  assert_true(total > 0);
}

/* Stores measurements until the disk is full. Returns 0 if the error is clear and every acknowledged measurement is
 * there. */
static int fill_up(const char *path) {
  wlm_store *store;
  int64_t i = 0;
  wlm_status status = wlmi_store_open(path, WLMI_STORE_WRITE, &store);
  if (status != WLM_OK) return 10;
  while (status == WLM_OK && i < 100000) {
    wlmi_measurement_record records[64];
    for (int k = 0; k < 64; k++) records[k] = sample_measurement(i + k);
    status = wlmi_store_put(store, records, 64);
    if (status == WLM_OK) i += 64;
  }
  if (status != WLM_ERR_IO || !strstr(wlm_error_detail(), path) || !strstr(wlm_error_detail(), "nothing of this write"))
    return 11;
  wlmi_store_counts counts;
  if (wlmi_store_count(store, &counts) != WLM_OK || counts.measurements != i || i == 0) return 12;
  wlmi_store_close(store);
  marks all = marks_of(path, i);
  return all.count == i ? 0 : 13;
}

static int with_a_file_size_limit(void) {
  struct rlimit limit = {200000, 200000};
  signal(SIGXFSZ, SIG_IGN);
  return setrlimit(RLIMIT_FSIZE, &limit) ? 99 : fill_up(folder.file);
}

static int on_a_small_disk(void) {
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", folder.path, "tmpfs", 0, "size=256k"))
    return 99;
  return fill_up(folder.file);
}

static int in_a_child(int (*work)(void)) {
  pid_t child = fork();
  if (child == 0) _exit(work());
  int result;
  assert_int_equal(child, waitpid(child, &result, 0));
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

TEST_BETWEEN(a_file_that_may_not_grow, setup, folder_end) {
  assert_int_equal(0, in_a_child(with_a_file_size_limit));
  wlm_store *store; /* without the limit, storing works again */
  assert_status(WLM_OK, wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store));
  assert_true(put_number(store, 999999));
  wlmi_store_close(store);
}

TEST_BETWEEN(a_full_disk, setup, folder_end) {
  int result = in_a_child(on_a_small_disk);
  if (result == 99) {
    print_message("no right to mount a small disk here\n");
    skip();
  }
  assert_int_equal(result, 0);
}

/* On a read-only file system: reading works, and writing fails with a clear error. */
static int on_a_read_only_medium(void) {
  wlm_store *store;
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("none", folder.path, "tmpfs", 0, "size=1m"))
    return 99;
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_OK) return 10;
  for (int64_t i = 0; i < 5; i++)
    if (!put_number(store, i)) return 11;
  wlmi_store_close(store);
  if (mount("none", folder.path, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL)) return 98;
  marks all = marks_of(folder.file, 5);
  if (all.count != 5) return 12;
  free(all.seen);
  if (wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store) != WLM_ERR_IO) return 13;
  if (!strstr(wlm_error_detail(), "is read-only")) return 14;
  if (wlmi_store_open(in_folder("sub/new.db"), WLMI_STORE_WRITE, &store) != WLM_ERR_IO) return 15;
  return strstr(wlm_error_detail(), "new.db: cannot open for writing: Read-only file system") ? 0 : 16;
}

TEST_BETWEEN(a_read_only_medium, setup, folder_end) {
  int result = in_a_child(on_a_read_only_medium);
  if (result >= 98) {
    print_message("no right to mount a read-only file system here\n");
    skip();
  }
  assert_int_equal(result, 0);
}

/* The settings that docs/store.md promises: no feature that a network file system lacks, and a put waits for the
 * disk. */
TEST_BETWEEN(settings_are_as_documented, setup, folder_end) {
  static const struct {
    const char *pragma, *value;
  } settings[] = {{"PRAGMA journal_mode", "delete"}, {"PRAGMA synchronous", "2"}, {"PRAGMA locking_mode", "normal"}};
  OWN(wlm_store, store, wlmi_store_open(folder.file, WLMI_STORE_WRITE, &store));
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    GET(sqlite3_stmt *, row, wlmi_sqlite_prepare(store->db, settings[i].pragma, &row));
    GET(int, found, wlmi_sqlite_step(row, &found));
    assert_string_equal(wlmi_sqlite_text(row, 0), settings[i].value);
    sqlite3_finalize(row);
  }
}
