/* bench/suites/sources.tsv tells users who lack the data folder where the real matrices of the suites come from. */
#include "support/test.h"
#include "support/tsv.h"

static int is_listed(const tsv_table *sources, const char *name) {
  for (int i = 0; i < sources->rows; i++)
    if (!strcmp(tsv_text(sources, i, "name"), name)) return 1;
  return 0;
}

static void suite_has_sources(const tsv_table *sources, const char *suite) {
  char line[256];
  int real = 0;
  FILE *file = fopen(suite, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, " \n")] = 0;
    if (!*line || *line == '#' || !strcmp(line, "n") || strchr(line, ':')) continue;
    if (!is_listed(sources, line)) fail_msg("bench/suites/sources.tsv does not tell where %s comes from", line);
    real++;
  }
  fclose(file);
  assert_true(real > 0);
}

TEST(suites_have_sources) {
  static const char *const suites[] = {"core", "papers", "sampled"};
  tsv_table sources;
  assert_true(tsv_read(WLM_SOURCE_DIR "/bench/suites/sources.tsv", &sources));
  for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
    char path[1000];
    snprintf(path, sizeof path, WLM_SOURCE_DIR "/bench/suites/%s.txt", suites[i]);
    suite_has_sources(&sources, path);
  }
  tsv_free(&sources);
}
