/* The decisions on an H200 with the shipped database for the 145 cases of bench suite core, and for those of its
 * matrices that were tuned for at most 8 columns or for 512: a golden file of step and variant, for one call and for a
 * thousand. It covers the steps of the selection: with the whole database ("tuned"), without the matrix's own
 * measurements ("unseen"), and without any measurements ("rule").
 * WARPLOOM_UPDATE_GOLDEN=1 rewrites the file. Pruning the database changes none of the tuned decisions. */
#include <unistd.h>

#include "core/base/text.h"
#include "select/prune.h"
#include "support/emit_fixture.h"
#include "support/folder.h"
#include "support/shipped.h"
#include "support/test.h"

static const char golden[] = WLM_SOURCE_DIR "/tests/db/golden/decisions.tsv";
enum { MODES = 3 };
static const char *const modes[MODES] = {"tuned", "unseen", "rule"};

static void add_lines(const shipped_case *c, int mode, const wlmi_snapshot *snapshot, wlmi_text *lines) {
  static const int64_t calls[] = {1, 1000};
  for (int i = 0; i < 2; i++) {
    GET(wlmi_decision, decision, shipped_choose(c, snapshot, WLMI_USE_MEASURED, calls[i], &decision));
    wlmi_text_printf(lines, "%s\t%s\t%lld\t%lld\t%s\t%s\n", modes[mode], c->matrix, (long long)c->n,
                     (long long)calls[i], wlmi_step_name(decision.step), decision.variant);
  }
}

TEST(decisions_equal_the_golden_file) {
  shipped_database database;
  wlmi_snapshot snapshots[MODES];
  HELD(wlmi_text) lines = {0};
  size_t size;
  shipped_load(&database);
  assert_int_equal(database.case_count, 145 + 133);
  shipped_snapshot_make(&database, NULL, 1, &snapshots[0]);
  for (int64_t i = 0; i < database.case_count; i++) {
    const shipped_case *c = &database.cases[i];
    if (!i || strcmp(c->matrix, c[-1].matrix)) {
      for (int mode = 1; i && mode < MODES; mode++) wlmi_snapshot_clear(&snapshots[mode]);
      shipped_snapshot_make(&database, c->matrix, 1, &snapshots[1]);
      shipped_snapshot_make(NULL, NULL, 0, &snapshots[2]);
    }
    for (int mode = 0; mode < MODES; mode++) add_lines(c, mode, &snapshots[mode], &lines);
  }
  for (int mode = 0; mode < MODES; mode++) wlmi_snapshot_clear(&snapshots[mode]);
  shipped_release(&database);
  if (getenv("WARPLOOM_UPDATE_GOLDEN")) write_whole(golden, lines.data, lines.size);
  if (access(golden, R_OK)) fail_msg("%s is not there: run the test with WARPLOOM_UPDATE_GOLDEN=1", golden);
  FREED unsigned char *expected = read_whole(golden, &size);
  size_t line = 0;
  for (size_t i = 0; i < size && i < lines.size && expected[i] == (unsigned char)lines.data[i]; i++)
    if (lines.data[i] == '\n') line = i + 1;
  if (size != lines.size || memcmp(expected, lines.data, size))
    fail_msg("expected %.*s\n     got %.*s", (int)strcspn((char *)expected + line, "\n"), (char *)expected + line,
             (int)strcspn(lines.data + line, "\n"), lines.data + line);
}

/* With the fewest measurements that `db prune --keep` can leave, each matrix gets the same kernel. */
TEST(pruning_changes_no_decision) {
  static const int64_t calls[] = {1, 2, 10, 100, 1000, 1000000};
  shipped_database database;
  wlmi_snapshot whole, pruned;
  wlmi_class *classes;
  int64_t class_count, kept = 0;
  shipped_load(&database);
  assert_status(WLM_OK, wlmi_classes_make(database.records, database.record_count, &classes, &class_count));
  assert_int_equal(class_count, 1);
  FREED char *superfluous = calloc((size_t)database.record_count, 1);
  assert_status(WLM_OK, wlmi_class_superfluous(classes, 1, superfluous));
  shipped_snapshot_make(&database, NULL, 1, &whole);
  shipped_database left = database;
  left.records = calloc((size_t)database.record_count, sizeof *left.records);
  for (int64_t i = 0; i < database.record_count; i++)
    if (!superfluous[i]) left.records[kept++] = database.records[i];
  left.record_count = kept;
  assert_in_range(kept, database.record_count / 4, database.record_count - 1);
  shipped_snapshot_make(&left, NULL, 1, &pruned);
  for (int64_t i = 0; i < database.case_count; i++)
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
      wlmi_decision before, after;
      assert_status(WLM_OK, shipped_choose(&database.cases[i], &whole, WLMI_USE_MEASURED, calls[k], &before));
      assert_status(WLM_OK, shipped_choose(&database.cases[i], &pruned, WLMI_USE_MEASURED, calls[k], &after));
      if (before.step != after.step || strcmp(before.variant, after.variant))
        fail_msg("%s, n = %lld, %lld calls: %s, after pruning %s", database.cases[i].matrix,
                 (long long)database.cases[i].n, (long long)calls[k], before.variant, after.variant);
    }
  wlmi_snapshot_clear(&whole);
  wlmi_snapshot_clear(&pruned);
  free(left.records);
  wlmi_classes_free(classes, class_count);
  shipped_release(&database);
}

GROUP(emit_begin, emit_end)
