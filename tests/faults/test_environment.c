/* The command without a resource: descriptors, address space, disk space, a compiler. It reports the error and does not
 * crash, and data that it stored never prevents a later product or tuning. WARPLOOM_FULL: every number of a row. */
#include <unistd.h>

#include "support/command.h"
#include "support/test.h"

#define PRODUCT "synth:rows=200,d=4,cv=1", "-n", "8", "--device", "host", "--db", database

/* What a shell does before it starts the command, with $N for each number from `first` in steps of `step` (of 1 with
 * WARPLOOM_FULL) to `last`; $D is a folder of its own. */
#define DISK "mount -t tmpfs -o size=$N,nr_inodes=0 none $D && export TMPDIR=$D XDG_CACHE_HOME=$D"
static const struct {
  const char *name, *shell;
  int first, last, step;
} faults[] = {
    {"descriptors", "ulimit -n $N", 4, 18, 8},
    {"address space in MB", "ulimit -v ${N}000", 16, 100, 40},
    {"blocks of a file", "trap '' XFSZ; ulimit -f $N", 0, 64, 48},
    {"disk full after KB", "N=${N}k;" DISK, 12, 132, 80},
    {"a read-only disk", "N=1,ro;" DISK, 0, 0, 1},
    {"no folder for temporary files", "export TMPDIR=$D/none", 0, 0, 1},
    {"no folder for the kernel cache", "export XDG_CACHE_HOME=$D/file/none", 0, 0, 1},
    {"no compiler", "export WARPLOOM_CC=$D/none", 0, 0, 1},
    {"a compiler that is killed", "export WARPLOOM_CC=$D/killed", 0, 0, 1},
    {"a compiler that writes nothing", "export WARPLOOM_CC=true", 0, 0, 1},
    {"closed standard output", "exec 1>&-", 0, 0, 1},
};

static const char fresh[] = /* makes a folder with a compiler that kills itself, and removes the database */
    "rm -rf $D $XDG_CACHE_HOME \"$1\" && mkdir $D && touch $D/file &&\n"
    "printf '%s\\n' '#!/bin/sh' '[ \"$1\" = --version ] && exec cc --version' 'kill -9 $$' > $D/killed &&\n"
    "chmod +x $D/killed; exit";
static const char whole[] = "mkdir -p $XDG_CACHE_HOME/warploom && cp $KERNELS $XDG_CACHE_HOME/warploom/kernels.db";

static char database[320];
static int can_mount;

static void set_path(const char *name, const char *file) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", folder.path, file);
  setenv(name, path, 1);
}

static void run(command *c, const char *shell, const char *action) {
  char text[1024];
  snprintf(text, sizeof text, "%s\nexec \"$@\"", shell);
  const char *const argv[] = {"/usr/bin/unshare", "-m",   "/bin/sh", "-c", text, "sh",
                              WLM_COMMAND,        action, PRODUCT,   NULL};
  command_start(c, &folder, can_mount ? argv : argv + 2);
  command_wait(c);
}

/* Whether a failed command reported its error. The dynamic loader prints its own message, and libgomp ends the
 * process if it cannot create a thread. */
static int is_reported(const command *c) {
  if (c->code == 126 || c->code == 127) return strstr(c->err, "error while loading shared libraries") != NULL;
  const int has_line = strstr(c->err, "warploom: ") || strstr(c->err, "libgomp: ");
  return c->code == 0 || ((c->code == 1 || c->code == 2) && has_line) ||
         (c->code == 1 && !c->err[0]); /* stderr could not be written either */
}

static void suffer(const char *name, const char *shell) {
  static const struct {
    const char *action;
    int starves;
  } steps[] = {{"tune", 1}, {"run", 1}, {"run", 0}, {"tune", 0}, {"run", 0}};
  enum { STEPS = sizeof steps / sizeof *steps };
  command c;
  for (int i = 0; i < STEPS; i++) {
    if (i == 0) {
      command_start(&c, &folder, (const char *const[]){"/bin/sh", "-c", fresh, "sh", database, NULL});
      command_wait(&c);
      assert_int_equal(c.code, 0);
    }
    run(&c, steps[i].starves ? shell : whole, steps[i].action);
    if (steps[i].starves ? !is_reported(&c) : c.code != 0)
      fail_msg("%s: %s number %d: exit %d: %s", name, steps[i].action, i + 1, c.code, c.err);
    if (i == STEPS - 1 && (strstr(c.err, "warning") || !strstr(c.out, "fingerprint")))
      fail_msg("%s: not tuned afterwards: %s%s", name, c.err, c.out);
  }
}

TEST(a_fault_is_reported_and_passes) {
  int count = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    if (!can_mount && strstr(faults[i].shell, "mount")) continue;
    const int step = getenv("WARPLOOM_FULL") ? 1 : faults[i].step;
    for (int number = faults[i].first; number <= faults[i].last; number += step, count++) {
      char shell[512], name[128];
      snprintf(shell, sizeof shell, "N=%d; %s", number, faults[i].shell);
      snprintf(name, sizeof name, "%s (%d)", faults[i].name, number);
      suffer(name, shell);
    }
  }
  print_message("%d environments%s\n", count, can_mount ? "" : "; no right to mount a disk here");
}

/* Four commands tune and four run a product, with the same files and without compiled kernels. */
TEST(eight_commands_at_once) {
  enum { COMMANDS = 8 };
  command c[COMMANDS], after;
  assert_int_equal(system("rm -rf $XDG_CACHE_HOME"), 0);
  unlink(database);
  for (int i = 0; i < COMMANDS; i++) command_begin(&c[i], &folder, i % 2 ? "run" : "tune", PRODUCT);
  for (int i = 0; i < COMMANDS; i++) {
    command_wait(&c[i]);
    if (c[i].code) fail_msg("command %d: exit %d: %s", i, c[i].code, c[i].err);
  }
  command_begin(&after, &folder, "db", "check", "--db", database);
  command_wait(&after);
  if (after.code) fail_msg("%s%s", after.out, after.err);
}

static int begin(void **state) {
  command c;
  if (home_begin(state)) return -1;
  can_mount = !system("unshare -m mount -t tmpfs none /tmp 2> /dev/null");
  snprintf(database, sizeof database, "%s/tuned.db", folder.path);
  set_path("D", "starved");
  set_path("KERNELS", "kernels.db");
  setenv("TMPDIR", folder.path, 1);
  run(&c, ":", "tune"); /* compiles all kernels once */
  if (c.code) fail_msg("%s", c.err);
  return system("mv $XDG_CACHE_HOME/warploom/kernels.db $KERNELS");
}

GROUP(begin, folder_end)
