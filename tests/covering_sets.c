/* Makes the covering sets and writes them to a folder: a ctest fixture for the programs that test their entries. */
#include <errno.h>
#include <sys/stat.h>

#include "support/covering.h"
#include "support/emit_fixture.h"
#include "support/test.h"

static void write_set(const char *folder, const wlmi_limits *limits, int full) {
  char path[512];
  HOLD(covering, set, covering_make(emit_generator, limits, 1, full, &set));
  covering_path(folder, limits, full, path, sizeof path);
  covering_save(&set, path);
}

TEST(covering_sets) {
  const char *folder = getenv("WARPLOOM_COVERING");
  const wlmi_limits *const devices[] = {&emit_cuda, &emit_smallest, &emit_host};
  assert_non_null(folder);
  if (mkdir(folder, 0777) && errno != EEXIST) fail_msg("%s: %s", folder, strerror(errno));
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    for (int full = 0; full <= covering_full(); full++) write_set(folder, devices[i], full);
}

GROUP(emit_begin, emit_end)
