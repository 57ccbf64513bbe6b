/* A tuner that is killed or interrupted, or runs beside another one. The command prints a line for each measurement
 * after it is on the disk, so the database must hold at least these. Import and prune do all or nothing. WARPLOOM_FULL:
 * ten times as many kills. */
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/command.h"
#include "support/db_fixture.h"
#include "support/script.h"
#include "support/test.h"

#define MATRIX "uniform:rows=3000,d=12"
#define SMALL  "uniform:rows=500,d=4"

static void pause_ms(int milliseconds) {
  nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
}

/* Counts the screening runs in the database, which must be undamaged; each of these has a line on stderr. */
static int64_t stored(const char *database) {
  OWNED(wlm_store) *store = NULL;
  wlmi_measurement_record *records;
  int64_t count, looks = 0;
  HELD(wlmi_text) report = {0};
  wlm_status status = wlmi_store_open(database, WLMI_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0; /* killed before it was made */
  assert_status(WLM_OK, status);
  if (wlmi_store_check(store, &report) != WLM_OK) fail_msg("%s", report.data);
  assert_status(WLM_OK, wlmi_store_load(store, NULL, &records, &count));
  for (int64_t i = 0; i < count; i++) looks += records[i].samples < WLMI_PRECISE_SAMPLES;
  wlmi_measurements_free(records, count);
  return looks;
}

/* "tune LABEL n=16 3/5 host_row/..." */
static int64_t told(const char *text) { return count_lines(text, " us (best "); }

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

enum { FILES = 2, KILLS = 10 };
static int files(void) { return getenv("WARPLOOM_FULL") ? 10 * FILES : FILES; }

/* Somewhere in so many milliseconds. */
static void kill_within(command *c, int milliseconds, uint64_t *random) {
  pause_ms((int)(draw(random) % (uint64_t)milliseconds));
  kill(c->process, SIGKILL);
}

static int milliseconds_since(double began) { return 1 + (int)(1e3 * (seconds() - began)); }

/* A measurement whose line was printed is on the disk. */
static void assert_kept(const command *c, int64_t before, int64_t now) {
  const int64_t lines = told(c->err);
  if (now - before < lines || (c->code == 0 && now - before > lines))
    fail_msg("%lld lines, %lld measurements", (long long)lines, (long long)(now - before));
}

/* In one half of the lives anywhere, in the other soon after some measurement was told of, when the next ones are
 * about to be written. */
static void kill_tuner(command *c, int life, int whole_ms, uint64_t *random) {
  const int64_t wanted = life % 2 ? 1 + (int64_t)(draw(random) % 9) : 0;
  const double began = seconds();
  if (!wanted) return kill_within(c, whole_ms, random);
  for (int64_t lines = 0; lines < wanted && seconds() < began + 60; pause_ms(2)) {
    FREED char *text = text_of(c->err_path);
    lines = told(text);
  }
  kill_within(c, 100, random);
}

/* Each file sees ten lives of the tuner, the first of which make it and the kernel cache, and one that is left alone.
 * Those of the file before all others are, too: they tell how long that takes. */
TEST(killed) {
  uint64_t random = 5;
  int killed = 0, while_measuring = 0, whole_ms = 0;
  char database[320];
  const char *cache = in_folder("cache/warploom/kernels.db");
  for (int file = -1; file < files(); file++) {
    int64_t before = 0;
    snprintf(database, sizeof database, "%s/killed-%d.db", folder.path, file);
    unlink(cache);
    for (int life = file < 0 ? KILLS - 1 : 0; life <= KILLS; life++) {
      const int alone = file < 0 || life == KILLS;
      const double began = seconds();
      command c;
      command_begin(&c, &folder, "tune", SMALL, "-n", "16,32", "--device", "host", "--db", database, "--again");
      if (!alone) kill_tuner(&c, life, whole_ms, &random);
      command_wait(&c);
      if (file < 0) whole_ms = milliseconds_since(began);
      if (c.code && (alone || c.code != -SIGKILL)) fail_msg("%d: %s", c.code, c.err);
      const int64_t now = stored(database);
      assert_kept(&c, before, now);
      killed += c.code != 0;
      while_measuring += c.code && told(c.err);
      before = now;
    }
  }
  print_message("%d of %d killed, %d of them while measuring\n", killed, files() * KILLS, while_measuring);
  assert_true(while_measuring > files());
}

/* What is in it, which must be whole. */
static int64_t measurements(const char *database) {
  OWNED(wlm_store) *store = NULL;
  wlmi_text report = {0};
  wlm_status status = wlmi_store_open(database, WLMI_STORE_READ, &store);
  if (status == WLM_ERR_NOT_FOUND) return 0;
  assert_status(WLM_OK, status);
  if (wlmi_store_check(store, &report) != WLM_OK) fail_msg("%s", report.data);
  GET(wlmi_store_counts, counts, wlmi_store_count(store, &counts));
  return counts.measurements;
}

static void copy_file(const char *from, const char *to) {
  size_t size;
  FREED unsigned char *data = read_whole(from, &size);
  write_whole(to, data, size);
}

enum { SAMPLES = 700, MORE = 1200 };

/* Runs `action argument` on copies of a database of SAMPLES measurements, or on none, each time killed; left alone
 * it takes `whole_ms` and leaves `after`. */
static void kill_changing(const char *action, const char *argument, const char *from, int64_t after) {
  uint64_t random = 7;
  int64_t changed = 0;
  const int64_t before = from ? measurements(from) : 0;
  int whole_ms = 0;
  command c;
  char journal[340];
  const char *database = in_folder("changing.db");
  snprintf(journal, sizeof journal, "%s-journal", database);
  for (int i = 0; i <= files() * KILLS; i++) {
    const double began = seconds();
    unlink(database);
    unlink(journal);
    if (from) copy_file(from, database);
    command_begin(&c, &folder, action, argument, "--db", database);
    if (whole_ms) kill_within(&c, whole_ms, &random);
    command_wait(&c);
    if (c.code && c.code != -SIGKILL) fail_msg("%s: %d, %s", action, c.code, c.err);
    const int64_t now = measurements(database);
    if (now != after && (c.code == 0 || now != before)) fail_msg("%s: %lld measurements", action, (long long)now);
    changed += whole_ms && now == after;
    if (!whole_ms) whole_ms = milliseconds_since(began);
  }
  print_message("%s: %lld of %d killed after the change\n", action, (long long)changed, files() * KILLS);
}

/* A half of an import or of a deletion is never seen. */
TEST(all_or_nothing) {
  const char *database = in_folder("samples.db"), *more = in_folder("more.db"), *lines = in_folder("more.jsonl");
  put_samples(database, SAMPLES);
  put_samples(more, MORE);
  RUN(0, "export", "-o", lines, "--db", more);
  kill_changing("import", lines, NULL, MORE);
  kill_changing("import", lines, database, MORE);

  GET(wlm_store *, store, wlmi_store_open(database, WLMI_STORE_WRITE, &store));
  for (int64_t i = 0; i < 40; i++) { /* measured again with a newer source */
    wlmi_measurement_record record = sample_measurement(i);
    record.version = "0123456789abcdef0123456789abcdef";
    record.made_at += SAMPLES;
    assert_status(WLM_OK, wlmi_store_put(store, &record, 1));
  }
  wlmi_store_close(store);
  copy_file(database, more);
  RUN(0, "db", "prune", "--db", more);
  assert_true(measurements(more) < SAMPLES);
  kill_changing("db", "prune", database, measurements(more));
}

/* After kills the same command measures what is missing. A busy machine measures noisy kernels again, so it may take
 * several runs until there is nothing left to do. */
TEST(the_same_command_resumes) {
  uint64_t random = 9;
  command c;
  const char *database = in_folder("gone-on.db");
  int64_t before = 0, now = 0;
  int is_done = 0;
  enum { KILLED = 4, MOST = 60 };
  for (int round = 0; !is_done; round++) {
    assert_true(round < MOST);
    command_begin(&c, &folder, "tune", MATRIX, "-n", "24", "--device", "host", "--db", database);
    if (round < KILLED) {
      pause_ms(50 + (int)(draw(&random) % 400));
      kill(c.process, SIGKILL);
    }
    command_wait(&c);
    now = stored(database);
    assert_true(now >= before + told(c.err));
    if (round >= KILLED) assert_int_equal(c.code, 0);
    is_done = round >= KILLED && told(c.err) == 0;
    if (is_done) {
      assert_int_equal(now, before);
      assert_contains(c.out, "choice");
    }
    before = now;
  }
  assert_true(now >= 5);
}

/* Different candidates in the database. */
static int64_t candidates_stored(const char *database) {
  wlmi_measurement_record *records;
  int64_t count, different = 0;
  OWN(wlm_store, store, wlmi_store_open(database, WLMI_STORE_READ, &store));
  assert_status(WLM_OK, wlmi_store_load(store, NULL, &records, &count));
  for (int64_t i = 0; i < count; i++) {
    int before = 0;
    for (int64_t k = 0; k < i; k++)
      before |= !strcmp(records[i].variant, records[k].variant) && records[i].n == records[k].n;
    different += !before;
  }
  wlmi_measurements_free(records, count);
  return different;
}

/* Measurements are stored and shown, temporary files are removed, and the process ends by the signal, so that the
 * shell that called it stops, too. */
TEST(interrupted) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  char database[320];
  const char *temporary = in_folder("temporary");
  for (int i = 0; i < 3; i++) {
    command c;
    snprintf(database, sizeof database, "%s/interrupted-%d.db", folder.path, i);
    assert_int_equal(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1);
    command_begin(&c, &folder, "tune", MATRIX, "-n", "16,32,64,128,256,512", "--device", "host", "--db", database);
    unsetenv("TMPDIR");
    for (int64_t lines = 0; lines < 2; pause_ms(10)) {
      FREED char *text = text_of(c.err_path);
      lines = told(text);
    }
    kill(c.process, signals[i]);
    command_wait(&c);
    assert_int_equal(c.code, -signals[i]);
    assert_contains(c.err, "interrupted", "kept");
    assert_true(told(c.err) >= 2);
    assert_true(stored(database) >= told(c.err)); /* what was on its way when it was interrupted is kept, too */
    assert_contains(c.out, "choice");             /* the table of measurements is printed as usual */
    assert_int_equal(count_lines(c.out, "e-0"), candidates_stored(database)); /* errors of 1e-07 or so */
    if (rmdir(temporary)) fail_msg("signal %d left files behind", signals[i]);
  }
}

/* A signal ends the command together with a compiler that hangs, and with the programs of that compiler. */
TEST(a_compiler_that_hangs) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  static const char *const actions[] = {"tune", "run"};
  setenv("D", folder.path, 1);
  setenv(
      "WARPLOOM_CC",
      script_make(&folder, "cc", "[ \"$1\" = --version ] && exec cc --version; sleep 1000 & echo $! > $D/child; wait"),
      1);
  for (int i = 0; i < 6; i++) {
    command c;
    char database[320];
    snprintf(database, sizeof database, "%s/hanging-%d.db", folder.path, i);
    unlink(folder_file(&folder, "child"));
    command_begin(&c, &folder, actions[i % 2], "uniform:rows=300,d=5", "-n", "48", "--device", "host", "--db",
                  database);
    script_wait_for_start(&folder, "child");
    kill(c.process, signals[i / 2]);
    command_wait(&c);
    assert_int_equal(c.code, -signals[i / 2]);
    script_wait_for_end(&folder, "child");
  }
  unsetenv("WARPLOOM_CC");
}

/* A signal that the caller ignores, as nohup does, stays ignored. */
TEST(ignored_signals_stay_ignored) {
  command c;
  const char *database = in_folder("ignored.db");
  signal(SIGHUP, SIG_IGN);
  command_begin(&c, &folder, "tune", SMALL, "-n", "16", "--device", "host", "--db", database);
  signal(SIGHUP, SIG_DFL);
  for (int64_t lines = 0; lines < 1; pause_ms(5)) {
    FREED char *text = text_of(c.err_path);
    lines = count_lines(text, "tune ");
  }
  kill(c.process, SIGHUP);
  command_wait(&c);
  assert_int_equal(c.code, 0);
}

TEST(without_candidates) {
  command c;
  const char *database = in_folder("nothing.db");
  for (int i = 0; i < 2; i++) {
    c = RUN(0, "tune", "uniform:rows=10,d=0", "-n", "4", "--device", "host", "--db", database);
    assert_contains(c.out, "nothing to tune");
    assert_null(strstr(c.out, "left"));
  }
}

TEST(four_at_once) {
  enum { PROCESSES = 4 };
  command c[PROCESSES];
  int64_t lines = 0;
  const char *database = in_folder("shared.db");
  for (int i = 0; i < PROCESSES; i++) {
    char seed[2] = {(char)('1' + i), 0};
    command_begin(&c[i], &folder, "tune", MATRIX, "-n", "16,32", "--device", "host", "--db", database, "--seed", seed,
                  "--again");
  }
  for (int i = 0; i < PROCESSES; i++) {
    command_wait(&c[i]);
    if (c[i].code) fail_msg("%s", c[i].err);
    lines += told(c[i].err);
  }
  assert_true(lines > PROCESSES * 8);
  assert_int_equal(stored(database), lines);
}

static int begin(void **state) {
  folder_begin_in_memory(state);
  home_enter(&folder);
  return 0;
}

GROUP(begin, folder_end)
