/* Reads the #include lines of every room: includes go down only, rooms of one floor do not include each other, and only
 * the rooms named here include a foreign library. */
#include "support/test.h"
#include "support/tree.h"

typedef struct room {
  const char *name;
  int floor;
} room;

/* A room inside another one comes first. The template files here are C text that kernels and the library share.
 * Rooms of floor 0 may include each other. */
static const room rooms[] = {
    {"include/warploom/", 0},
    {"warploom/", 0},
    {"core/base/", 0},
    {"core/problem/", 1},
    {"templates/prelude/args.h", 0},
    {"templates/prelude/attention_args.h", 0},
    {"templates/prelude/batch_args.h", 0},
    {"templates/prelude/message_args.h", 0},
    {"templates/prelude/product_args.h", 0},
    {"templates/programs/stats.h", 0},
    {"templates/programs/faults.h", 0},
    {"core/csr/", 2},
    {"core/records/", 2},
    {"core/synth/", 3},
    {"core/reference/", 3},
    {"select/", 2},
    {"generator/", 3},
    {"db/", 3},
    {"runtime/dispatch/", 3},
    {"runtime/", 4},
    {"exported/", 5},
    {"tuner/", 5},
    {"cli/", 6},
    {"bench/", 7},
};

static const struct {
  const char *header, *allowed[3]; /* a header, and the beginnings of the paths that may include it */
} foreign[] = {
    {"cuda", {"runtime/cuda/", "bench/baseline_"}},
    {"nvrtc", {"runtime/cuda/", NULL}},
    {"cusparse", {"bench/baseline_", "bench/cusparse_"}},
    {"lua", {"generator/", NULL}},
    {"lauxlib.h", {"generator/", NULL}},
    {"sqlite3.h", {"db/", NULL}},
    {"jansson.h", {"core/base/json_value", "core/records/"}},
    {"zlib.h", {"core/csr/", NULL}},
    {"lzma.h", {"db/kernel_archive", NULL}},
    {"minizip", {"core/csr/npz", NULL}},
    {"xxhash.h", {"core/base/", NULL}},
};

static const char *const public_headers[] = {"stddef.h", "stdint.h"};

static int begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

static const room *room_of(const char *path) {
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
    if (begins(path, rooms[i].name)) return &rooms[i];
  return NULL;
}

/* Returns why the include is wrong, or NULL. */
static const char *refuse_own(const char *path, const char *header) {
  /* includes a header of its own folder, as after installation */
  if (begins(path, "include/") && !strchr(header, '/')) return NULL;
  const room *from = room_of(path), *to = room_of(header);
  if (!to) return "is in no room; name it from the root";
  if (from == to || to->floor < from->floor || (!to->floor && !from->floor && !begins(path, "include/"))) return NULL;
  return to->floor == from->floor ? "is another room of the same floor" : "is on a floor above";
}

static const char *refuse_foreign(const char *path, const char *header) {
  if (begins(path, "include/")) {
    for (size_t i = 0; i < sizeof public_headers / sizeof *public_headers; i++)
      if (!strcmp(header, public_headers[i])) return NULL;
    return "does not belong into a public header";
  }
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    if (!begins(header, foreign[i].header)) continue;
    for (int k = 0; k < 3 && foreign[i].allowed[k]; k++)
      if (begins(path, foreign[i].allowed[k])) return NULL;
    return "is not for this room";
  }
  return begins(header, "warploom/") && !begins(path, "examples/") ? "is ours: include it with quotes" : NULL;
}

static const char *refuse_example(const char *path, const char *header) {
  (void)path;
  return begins(header, "warploom/") ? NULL : "is not public, and examples are users";
}

/* header[0] is the quote or angle bracket. */
static const char *refuse(const char *path, const char *header) {
  if (header[0] == '<') return refuse_foreign(path, header + 1);
  return begins(path, "examples/") ? refuse_example(path, header + 1) : refuse_own(path, header + 1);
}

static int files, imports, faults;

static void read_file(const char *path) {
  char name[1024], line[1024], header[256];
  snprintf(name, sizeof name, "%s/%s", WLM_SOURCE_DIR, path);
  FILE *file = fopen(name, "r");
  assert_non_null(file);
  files++;
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    if (sscanf(line, " # include %255[^>\n]", header) != 1) continue;
    header[1 + strcspn(header + 1, "\"")] = 0;
    imports++;
    const char *why = refuse(path, header);
    if (!why) continue;
    faults++;
    print_error("%s:%d: %s %s\n", path, number, header + 1, why);
  }
  fclose(file);
}

TEST(imports_go_down) {
  static const char *const folders[] = {"include",  "core",  "select", "generator", "db",      "runtime",
                                        "exported", "tuner", "cli",    "bench",     "examples"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], read_file);
  print_message("%d files, %d imports\n", files, imports);
  assert_int_equal(faults, 0);
  assert_true(files > 80 && imports > 300);
}

/* The rules refuse what they must refuse. */
TEST(rules_refuse) {
  static const struct {
    const char *path, *header;
    int refused;
  } cases[] = {
      {"db/store.c", "\"core/base/text.h", 0},
      {"db/store.c", "\"core/base/path.h", 0},
      {"db/store.c", "\"core/synth/twin.h", 1}, /* a room of the same floor */
      {"db/care.c", "\"select/case.h", 0},
      {"select/case.c", "\"core/records/record.h", 1},
      {"select/case.c", "\"core/csr/stats.h", 1},
      {"select/select.c", "\"generator/generator.h", 1},
      {"select/snapshot.c", "<sqlite3.h", 1},
      {"core/base/text.c", "\"db/store.h", 1}, /* a higher floor */
      {"runtime/dispatch/plan.c", "\"runtime/context.h", 1},
      {"runtime/context.c", "\"runtime/dispatch/plan.h", 0},
      {"runtime/context.c", "\"tuner/timing.h", 1},
      {"tuner/tune.c", "\"db/store.h", 0},
      {"cli/main.c", "\"bench/suite.h", 1},
      {"bench/bench.c", "\"cli/options.h", 0},
      {"cli/main.c", "\"text.h", 1},
      {"runtime/host/device.c", "<cuda.h", 1},
      {"runtime/cuda/device.c", "<cuda.h", 0},
      {"runtime/dispatch/cuda_x.c", "<cuda.h", 1},
      {"bench/baseline_cusparse.c", "<cusparse.h", 0},
      {"bench/method.c", "<cusparse.h", 1},
      {"cli/cmd_export.c", "<sqlite3.h", 1},
      {"include/warploom/warploom.h", "<stdint.h", 0},
      {"include/warploom/warploom.h", "<pthread.h", 1},
      {"include/warploom/warploom.h", "<cuda.h", 1},
      {"include/warploom/warploom.h", "\"core/base/text.h", 1},
      {"include/warploom/warploom.h", "<stdio.h", 1},
      {"include/warploom/warploom_tune.h", "\"warploom.h", 0},
      {"examples/spmm.c", "\"core/base/text.h", 1},
      {"examples/spmm.c", "<warploom/warploom.h", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if ((refuse(cases[i].path, cases[i].header) != NULL) != cases[i].refused)
      fail_msg("%s includes %s", cases[i].path, cases[i].header);
}
