/* Commands that write a file (-o): a failure leaves the old file as it was and nothing beside it; devices and pipes are
 * written as they are and stay. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "support/command.h"
#include "support/db_fixture.h"
#include "support/test.h"

static const char old_text[] = "precious\n";

/* Runs a line of the shell in the folder; $W is the command. */
static void shell(command *c, const char *line) {
  char whole[2048];
  snprintf(whole, sizeof whole, "W='%s'; cd '%s' && %s", WLM_COMMAND, folder.path, line);
  command_start(c, &folder, (const char *const[]){"/bin/sh", "-c", whole, NULL});
  command_wait(c);
}

static void shell_expect(int code, const char *says, const char *line) {
  command c;
  shell(&c, line);
  if (c.code != code || !strstr(c.err, says)) fail_msg("%s: exit code %d\n%s", line, c.code, c.err);
}

static void assert_content(const char *name, const char *expected) {
  FREED char *content = text_of(folder_file(&folder, name));
  if (strcmp(content, expected)) fail_msg("%s holds: %.200s", name, content);
}

/* No file is left beside the one that was to be written. */
static void assert_nothing_beside(void) {
  DIR *files = opendir(folder.path);
  for (struct dirent *entry; (entry = readdir(files));)
    if (strstr(entry->d_name, ".tmp-")) fail_msg("%s is left", entry->d_name);
  closedir(files);
}

static const char matrix_text[] = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n";
/* Each writes more than the limit of the test to the file `out`. */
static const char *const writers[] = {
    "\"$W\" convert uniform:rows=4000,d=4 -o out",
    "\"$W\" export --db samples.db -o out",
};

static int output_begin(void **state) {
  const int failed = home_begin(state);
  put_samples(folder_file(&folder, "samples.db"), 60);
  write_whole(folder_file(&folder, "small.mtx"), matrix_text, strlen(matrix_text));
  return failed;
}

/* A limit on the size of files stands for a full disk. */
TEST(a_full_disk_keeps_the_old_file) {
  for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
    char line[512];
    command c;
    write_whole(folder_file(&folder, "out"), old_text, strlen(old_text));
    snprintf(line, sizeof line, "trap '' XFSZ; ulimit -f 2; %s", writers[i]);
    shell(&c, line);
    if (!c.code) fail_msg("%s: succeeds", line);
    assert_content("out", old_text);
    assert_nothing_beside();
  }
}

TEST(bench_refuses_files_of_others) {
  static const char *const contents[] = {old_text, "precious", "{\"suite\":\"core\"}\nprecious"};
  for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
    write_whole(folder_file(&folder, "notes"), contents[i], strlen(contents[i]));
    shell_expect(1, "notes: has lines that are no results of bench; name another file",
                 "\"$W\" bench core small.mtx -n 8 --device host --samples 3 -o notes");
    assert_content("notes", contents[i]);
  }
}

/* Not the system's /dev/full: a command that removes it would harm other programs. */
TEST(devices_stay) {
  static const char *const lines[] = {
      "\"$W\" convert small.mtx -o full",
      "\"$W\" export --db samples.db -o full",
      "\"$W\" bench core small.mtx -n 8 --device host --samples 3 -o full > /dev/null",
  };
  struct stat info;
  if (mknod(folder_file(&folder, "full"), S_IFCHR | 0666, makedev(1, 7)))
    test_missing("root", "no right to make a device", "writing to a device is not tried");
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    command c;
    shell(&c, lines[i]);
    if (c.code == 0) fail_msg("%s: succeeds", lines[i]);
    if (c.code == 1) assert_contains(c.err, "No space left on device");
    assert_int_equal(lstat(folder_file(&folder, "full"), &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_nothing_beside();
  }
}

TEST(pipes_are_written_as_they_are) {
  static const struct {
    const char *line, *begin;
  } cases[] = {
      {"\"$W\" convert small.mtx -o pipe", matrix_text},
      {"\"$W\" export --db samples.db -o pipe", "{\"warploom\":\"tuned\","},
      {"\"$W\" bench core small.mtx -n 8 --device host --samples 3 -o pipe", "{\"suite\":\"core\","},
      {"\"$W\" convert small.mtx -o /dev/fd/3 3> pipe", "%%MatrixMarket"},
  };
  struct stat info;
  assert_int_equal(mkfifo(folder_file(&folder, "pipe"), 0600), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[512];
    snprintf(line, sizeof line, "{ cat pipe > got & } && %s && wait", cases[i].line);
    shell_expect(0, "", line);
    FREED char *got = text_of(folder_file(&folder, "got"));
    assert_int_equal(strncmp(got, cases[i].begin, strlen(cases[i].begin)), 0);
    assert_int_equal(lstat(folder_file(&folder, "pipe"), &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
  }
}

/* The shell has opened the file to append. */
TEST(a_file_behind_a_descriptor_is_appended_to) {
  static const char *const lines[] = {"\"$W\" export --db samples.db -o /dev/stdout >> all",
                                      "\"$W\" convert small.mtx -o /dev/fd/3 3>> all"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    write_whole(folder_file(&folder, "all"), old_text, strlen(old_text));
    shell_expect(0, "", lines[i]);
    FREED char *all = text_of(folder_file(&folder, "all"));
    assert_int_equal(strncmp(all, old_text, strlen(old_text)), 0);
    assert_contains(all, i ? "MatrixMarket" : "warploom");
  }
}

TEST(links_and_modes_stay) {
  struct stat info;
  write_whole(folder_file(&folder, "target"), old_text, strlen(old_text));
  shell_expect(0, "", "chmod 600 target && ln -s target link && \"$W\" convert small.mtx -o link");
  assert_int_equal(lstat(folder_file(&folder, "link"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(lstat(folder_file(&folder, "target"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  FREED char *content = text_of(folder_file(&folder, "target"));
  assert_contains(content, "MatrixMarket");
  shell_expect(1, "nowhere: is a symbolic link that leads nowhere",
               "ln -s missing nowhere && \"$W\" convert small.mtx -o nowhere");
  assert_int_equal(lstat(folder_file(&folder, "nowhere"), &info), 0);
  if (geteuid()) shell_expect(1, "Permission denied", "chmod 400 target && \"$W\" convert small.mtx -o target");
}

/* Whether the signal comes before, during or after the writing: the file is the old one or the new one. */
TEST(an_interrupt_leaves_nothing_beside) {
  command c;
  const char *out = in_folder("big.mtx");
  write_whole(out, old_text, strlen(old_text));
  command_begin(&c, &folder, "convert", "uniform:rows=200000,d=30", "-o", out);
  for (int begun = 0, tries = 0; !begun && tries < 3000; tries++) {
    DIR *files = opendir(folder.path);
    for (struct dirent *entry; (entry = readdir(files));) begun |= strstr(entry->d_name, "big.mtx.tmp-") != NULL;
    closedir(files);
    nanosleep(&(struct timespec){0, 2000000}, NULL);
  }
  kill(c.process, SIGTERM);
  command_wait(&c);
  assert_nothing_beside();
  if (c.code) assert_int_equal(c.code, -SIGTERM);
  if (c.code) assert_content("big.mtx", old_text);
}

GROUP(output_begin, folder_end)
