/* Tunings on one device take turns. */
#include <glob.h>
#include <unistd.h>

#include "core/base/path.h"
#include "support/command.h"
#include "support/host_bench.h"
#include "support/test.h"
#include "tuner/turn.h"
#include "warploom/warploom_tune.h"

static wlmi_turn first;
static int ticks, stop_at, release_at;
static char notice[512];

static int on_tick(void *user) {
  (void)user;
  if (++ticks == release_at) wlmi_turn_end(&first);
  return ticks == stop_at;
}

static void keep_notice(void *user, wlm_log_level level, const char *message) {
  (void)user;
  (void)level;
  snprintf(notice, sizeof notice, "%s", message);
}

TEST(the_second_waits_for_the_first) {
  const wlmi_device_info one = {.kind = "cuda", .name = "a GPU", .bus = "0000:01:00"};
  const wlmi_device_info other = {.kind = "cuda", .name = "a GPU", .bus = "0000:02:00"};
  wlmi_turn second, elsewhere;
  wlm_set_log(keep_notice, NULL, WLM_LOG_WARNING);
  assert_status(WLM_OK, wlmi_turn_take(&one, on_tick, NULL, &first));
  assert_true(first.file >= 0 && !first.waits);
  assert_status(WLM_OK, wlmi_turn_take(&other, on_tick, NULL, &elsewhere)); /* this turn is free */
  assert_true(elsewhere.file >= 0 && !ticks);
  assert_string_equal(notice, "");

  stop_at = 2;
  assert_status(WLM_ERR_CANCELLED, wlmi_turn_take(&one, on_tick, NULL, &second));
  assert_int_equal(second.file, -1);
  assert_contains(notice, "another tuning runs on a GPU");
  ticks = stop_at = 0;
  release_at = 3;
  assert_status(WLM_OK, wlmi_turn_take(&one, on_tick, NULL, &second));
  assert_true(second.file >= 0 && second.waits == 3 && second.seconds > 0);
  wlmi_turn_end(&second);
  wlmi_turn_end(&second); /* ending a turn that was not taken does nothing */
  wlmi_turn_end(&elsewhere);
  wlm_set_log(NULL, NULL, WLM_LOG_WARNING);
}

/* Without a folder for the lock file a tuning does not wait. */
TEST(no_lock_folder) {
  const wlmi_device_info one = {.kind = "host", .name = "a CPU"};
  wlmi_turn turns[2];
  setenv("XDG_CACHE_HOME", "/dev/null/no", 1);
  for (int i = 0; i < 2; i++) assert_status(WLM_OK, wlmi_turn_take(&one, NULL, NULL, &turns[i]));
  for (int i = 0; i < 2; i++) assert_int_equal(turns[i].file, -1);
  home_enter(&folder);
}

/* Replaces each lock file of the cache folder by a link to the target; returns how many there were. */
static int plant_links(const char *target) {
  HELD(wlmi_text) path = {0};
  glob_t locks = {0};
  assert_status(WLM_OK, wlmi_kernel_cache_default_path(&path));
  path.size = (size_t)(strrchr(path.data, '/') - path.data);
  wlmi_text_puts(&path, "/tuning-*.lock");
  glob(path.data, 0, NULL, &locks);
  const int count = (int)locks.gl_pathc;
  for (int i = 0; i < count; i++) {
    assert_int_equal(unlink(locks.gl_pathv[i]), 0);
    assert_int_equal(symlink(target, locks.gl_pathv[i]), 0);
  }
  globfree(&locks);
  return count;
}

/* A link in the place of the lock file, which another user may have planted: the file that it names is neither made
 * nor locked. */
TEST(a_planted_link_is_not_followed) {
  const wlmi_device_info one = {.kind = "cuda", .name = "a GPU", .bus = "0000:03:00"};
  const char *target = in_folder("target");
  GET(wlmi_turn, turn, wlmi_turn_take(&one, NULL, NULL, &turn));
  assert_true(turn.file >= 0);
  wlmi_turn_end(&turn);
  assert_true(plant_links(target) > 0);
  wlmi_turn_take(&one, NULL, NULL, &turn);
  assert_int_equal(turn.file, -1);
  assert_int_equal(access(target, F_OK), -1);
  wlmi_turn_end(&turn);
}

static int stop(void *user) { return (void)user, 1; }

static int is_held(void *user, int64_t done, int64_t total, const wlm_candidate_result *last) {
  const bench *b = user;
  wlmi_turn turn;
  (void)done;
  (void)total;
  if (!last) return 0;
  ticks++;
  assert_status(WLM_ERR_CANCELLED, wlmi_turn_take(&wlmi_context_device(b->context)->info, stop, NULL, &turn));
  return 0;
}

TEST(a_tuning_holds_its_turn) {
  wlmi_turn turn;
  MAKE(bench, b, NULL, "uniform:rows=100,d=4", 8);
  wlm_tune_options options = TUNE_OPTIONS(.min_sample_seconds = 1e-5, .progress = is_held, .user = &b);
  ticks = 0;
  assert_status(WLM_OK, wlm_tune(b.context, b.upload.matrix, &b.problem, &b.call, &options));
  assert_true(ticks > 1);
  /* the turn is free after the tuning */
  assert_status(WLM_OK, wlmi_turn_take(&wlmi_context_device(b.context)->info, stop, NULL, &turn));
  wlmi_turn_end(&turn);
}

GROUP(home_begin, folder_end)
