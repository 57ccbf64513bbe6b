/* Files that other users cannot write: how they are created, which files of other users are refused, and unpredictable
 * names. Tests that act as another user need root. */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/temporary.h"
#include "support/db_fixture.h"
#include "support/test.h"

static char place[400];

static const char *at(const char *name) {
  snprintf(place, sizeof place, "%s/%s", folder.path, name);
  return place;
}

static void assert_mode(const char *name, unsigned expected) {
  struct stat info;
  assert_int_equal(lstat(at(name), &info), 0);
  if ((info.st_mode & 07777) != expected) fail_msg("%s has mode %04o", name, (unsigned)info.st_mode & 07777);
}

TEST(new_files_are_private_for_any_umask) {
  static const mode_t masks[] = {0, 022, 077};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    char name[64], sources[2][400];
    const char *const paths[] = {sources[0], sources[1]};
    const mode_t before = umask(masks[i]);
    snprintf(name, sizeof name, "umask-%d/sub/tuned.db", (int)i);
    put_samples(at(name), 3);
    snprintf(sources[0], sizeof sources[0], "%s", place);
    snprintf(sources[1], sizeof sources[1], "%s", place);
    assert_mode(name, 0600);
    snprintf(name, sizeof name, "umask-%d/cache/kernels.db", (int)i);
    GET(wlmi_kernel_cache *, cache, wlmi_kernel_cache_open(at(name), 1 << 20, &cache));
    wlmi_kernel_cache_close(cache);
    assert_mode(name, 0600);
    snprintf(name, sizeof name, "umask-%d/merged.db", (int)i);
    GET(int64_t, count, wlmi_store_merge_files(paths, 2, at(name), NULL, &count));
    assert_mode(name, 0600);
    snprintf(name, sizeof name, "umask-%d", (int)i);
    assert_mode(name, 0700);
    snprintf(name, sizeof name, "umask-%d/sub", (int)i);
    assert_mode(name, 0700);
    umask(before);
  }
}

static void refused(wlmi_store_mode mode, const char *says) {
  wlm_store *store;
  assert_fails(WLM_ERR_IO, wlmi_store_open(at("tuned.db"), mode, &store), says);
  assert_contains(wlm_error_detail(), "not used");
}

TEST(files_writable_by_others_are_refused) {
  static const mode_t modes[] = {0666, 0660, 0602};
  put_samples(at("tuned.db"), 3);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    chmod(at("tuned.db"), modes[i]);
    refused(WLMI_STORE_READ, "chmod go-w");
    refused(WLMI_STORE_WRITE, "chmod go-w");
  }
  GET(wlm_store *, store, wlmi_store_open(at("tuned.db"), WLMI_STORE_READ_SHIPPED, &store));
  wlmi_store_close(store);
  chmod(at("tuned.db"), 0644);
  assert_status(WLM_OK, wlmi_store_open(at("tuned.db"), WLMI_STORE_WRITE, &store));
  wlmi_store_close(store);
  if (geteuid()) test_missing("root", "root", "a file of another user was not tried");
  assert_int_equal(chown(at("tuned.db"), 65534, 65534), 0);
  refused(WLMI_STORE_READ, "another user (uid 65534)");
  refused(WLMI_STORE_WRITE, "another user (uid 65534)");
}

static wlm_status open_cache(void) {
  wlmi_kernel_cache *cache;
  const wlm_status status = wlmi_kernel_cache_open(at("kernels.db"), 1 << 20, &cache);
  if (status == WLM_OK) wlmi_kernel_cache_close(cache);
  return status;
}

static wlm_status open_store(wlmi_store_mode mode) {
  wlm_store *store;
  const wlm_status status = wlmi_store_open(at("tuned.db"), mode, &store);
  if (status == WLM_OK) wlmi_store_close(store);
  return status;
}

static void nothing_opens(const char *says) {
  assert_fails(WLM_ERR_IO, open_cache(), says);
  assert_contains(wlm_error_detail(), "not used");
  refused(WLMI_STORE_WRITE, says);
}

/* A user who may write to the folder could replace the files, or place a journal beside them. */
TEST(databases_need_a_private_folder) {
  assert_status(WLM_OK, open_cache());
  put_samples(at("tuned.db"), 3);
  chmod(at("kernels.db"), 0666);
  assert_status(WLM_ERR_IO, open_cache());
  chmod(at("kernels.db"), 0600);
  chmod(folder.path, 0777);
  nothing_opens("chmod go-w");
  refused(WLMI_STORE_READ, "chmod go-w");
  chmod(folder.path, 01777);
  nothing_opens("mkdir -m 700");
  assert_status(WLM_OK, open_store(WLMI_STORE_READ));
  chmod(folder.path, 0700);
  assert_status(WLM_OK, open_cache());
  assert_status(WLM_OK, open_store(WLMI_STORE_WRITE));
}

/* The same holds for the folders above, but a sticky one such as /tmp is safe there. */
TEST(folders_above_are_checked) {
  wlmi_kernel_cache *cache;
  char link[400], path[400];
  assert_int_equal(mkdir(at("open"), 0700), 0);
  put_samples(at("open/own/tuned.db"), 3);
  chmod(at("open"), 0777);
  snprintf(path, sizeof path, "%s", at("open/own/kernels.db"));
  assert_fails(WLM_ERR_IO, wlmi_kernel_cache_open(path, 1 << 20, &cache), "/open (mode 0777)");
  assert_status(WLM_ERR_IO, wlmi_kernel_cache_open(at("open/new/kernels.db"), 1 << 20, &cache));
  assert_int_not_equal(access(at("open/new"), F_OK), 0); /* nor is anything made there */
  snprintf(link, sizeof link, "%s", at("link"));
  assert_int_equal(symlink("open/own", link), 0);
  assert_status(WLM_ERR_IO, wlmi_kernel_cache_open(at("link/kernels.db"), 1 << 20, &cache));
  chmod(at("open"), 01777);
  assert_status(WLM_OK, wlmi_kernel_cache_open(at("link/kernels.db"), 1 << 20, &cache));
  wlmi_kernel_cache_close(cache);
  assert_int_equal(access(path, F_OK), 0);
  if (geteuid()) test_missing("root", "root", "a folder and a link of another user were not tried");
  assert_int_equal(lchown(link, 65534, 65534), 0);
  assert_fails(WLM_ERR_IO, wlmi_kernel_cache_open(at("link/kernels.db"), 1 << 20, &cache),
               "a symbolic link of another user");
  assert_int_equal(chown(at("open"), 65534, 65534), 0);
  assert_fails(WLM_ERR_IO, wlmi_kernel_cache_open(path, 1 << 20, &cache), "belongs to another user (uid 65534)");
}

/* Systems that give each user a group of the same name set a umask of 002. */
TEST(the_users_own_group_may_write) {
  const struct passwd *user = getpwuid(geteuid());
  const struct group *group = user ? getgrgid(user->pw_gid) : NULL;
  const char *name = user ? user->pw_name : "";
  if (!group || strcmp(group->gr_name, name) ||
      (group->gr_mem[0] && (strcmp(group->gr_mem[0], name) || group->gr_mem[1])))
    test_missing("own group", "group of this user alone", "a folder that it may write was not tried");
  assert_int_equal(chown(folder.path, (uid_t)-1, user->pw_gid), 0);
  chmod(folder.path, 0770);
  assert_status(WLM_OK, open_cache());
  chmod(folder.path, 0772);
  assert_status(WLM_ERR_IO, open_cache());
  if (geteuid()) test_missing("root", "root", "a group of others was not tried");
  assert_int_equal(chown(folder.path, (uid_t)-1, 65534), 0);
  chmod(folder.path, 0770);
  assert_status(WLM_ERR_IO, open_cache());
}

/* SQLite rolls a journal back into the database, and copies a log into it, even those of another user. */
TEST(planted_journals_are_not_rolled_back) {
  static const char *const names[] = {"tuned.db-journal", "tuned.db-wal", "tuned.db-shm"};
  put_samples(at("tuned.db"), 3);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    write_whole(at(names[i]), "planted", 7);
    chmod(at(names[i]), 0666);
    refused(WLMI_STORE_READ, names[i]);
    refused(WLMI_STORE_WRITE, names[i]);
    chmod(at(names[i]), 0600);
    if (!geteuid()) {
      assert_int_equal(chown(at(names[i]), 65534, 65534), 0);
      refused(WLMI_STORE_READ, names[i]);
    }
    unlink(at(names[i]));
    assert_int_equal(symlink("tuned.db", at(names[i])), 0);
    refused(WLMI_STORE_WRITE, names[i]);
    unlink(at(names[i]));
  }
  write_whole(at("tuned.db-journal"), "unfinished", 10);
  chmod(at("tuned.db-journal"), 0600);
  chmod(folder.path, 01777);
  refused(WLMI_STORE_READ, "unfinished write");
  chmod(folder.path, 0700);
  assert_status(WLM_OK, open_store(WLMI_STORE_READ));
}

/* If names of temporary files can be guessed, another user can place symbolic links there and have their targets
 * overwritten. */
TEST(temporary_names_are_unpredictable) {
  char planted[480];
  write_whole(at("victim"), "precious", 8);
  for (int i = 0; i < 4; i++) {
    snprintf(planted, sizeof planted, "%s/out.jsonl.tmp-%ld-%d", folder.path, (long)getpid(), i);
    assert_int_equal(symlink(at("victim"), planted), 0);
  }
  assert_status(WLM_OK, wlmi_output_write(at("out.jsonl"), "text", 4));
  size_t size;
  FREED unsigned char *victim = read_whole(at("victim"), &size);
  assert_int_equal(size, 8);
  FREED unsigned char *written = read_whole(at("out.jsonl"), &size);
  assert_int_equal(size, 4);
}

/* ---- folders of runs ------------------------------------------------------------------------------------- */

static void make_run(const char *name, int old) {
  const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
  char file[96];
  assert_int_equal(mkdir(at(name), 0700), 0);
  snprintf(file, sizeof file, "%s/kernel.c", name);
  write_whole(at(file), "", 0);
  if (old) assert_int_equal(utimensat(AT_FDCWD, at(name), times, 0), 0);
}

static int is_there(const char *name) { return !access(at(name), F_OK); }

TEST(leftovers_of_killed_runs_are_removed) {
  make_run("warploom-run-killed", 1);
  make_run("warploom-run-recent", 0);
  make_run("warploom-run-in-use", 1);
  make_run("warploom-other", 1);
  make_run("warploom-run-foldrs", 1);
  assert_int_equal(mkdir(at("warploom-run-foldrs/sub"), 0700), 0);
  const int lock = open(at("warploom-run-in-use"), O_RDONLY | O_DIRECTORY);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  setenv("TMPDIR", folder.path, 1);
  const pid_t child = fork(); /* a process removes leftovers only once, so it runs in a child */
  if (!child) {
    wlmi_temporary temporary;
    char file[600];
    if (wlmi_temporary_open(&temporary) != WLM_OK) _exit(1);
    snprintf(file, sizeof file, "%s/a", temporary.folder);
    write_whole(file, "", 0);
    wlmi_temporary_close(&temporary);
    _exit(access(file, F_OK) && !*temporary.folder ? 0 : 2);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  unsetenv("TMPDIR");
  assert_false(is_there("warploom-run-killed"));
  assert_true(is_there("warploom-run-recent/kernel.c"));
  assert_true(is_there("warploom-run-in-use/kernel.c"));
  assert_true(is_there("warploom-other/kernel.c"));
  assert_true(is_there("warploom-run-foldrs/sub"));
  close(lock);
}

/* Another user who may rename the folder could put another kernel where the compiler wrote one. */
TEST(temporary_folders_cannot_be_exchanged) {
  wlmi_temporary temporary;
  char *text;
  size_t size;
  setenv("TMPDIR", folder.path, 1);
  chmod(folder.path, 0777);
  assert_fails(WLM_ERR_IO, wlmi_temporary_open(&temporary), "set TMPDIR");
  chmod(folder.path, 01777);
  assert_status(WLM_OK, wlmi_temporary_open(&temporary));
  unsetenv("TMPDIR");
  char file[600], moved[600];
  snprintf(file, sizeof file, "%s/a", temporary.folder);
  write_whole(file, "own", 3);
  snprintf(moved, sizeof moved, "%s-moved", temporary.folder);
  assert_int_equal(rename(temporary.folder, moved), 0);
  assert_int_equal(mkdir(temporary.folder, 0700), 0);
  write_whole(file, "planted", 7);
  assert_status(WLM_OK, wlmi_temporary_read(&temporary, "a", &text, &size)); /* through the descriptor */
  assert_string_equal(text, "own");
  wlm_string_free(text);
  assert_int_equal(symlink("a", at("link")), 0);
  assert_int_equal(rename(at("link"), strcat(moved, "/link")), 0);
  assert_status(WLM_ERR_IO, wlmi_temporary_read(&temporary, "link", &text, &size));
  wlmi_temporary_close(&temporary);
}

EACH(folder_begin, folder_end)
