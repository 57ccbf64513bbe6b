/* What the shared data folder has: its matrices against their lines in the manifest and in bench/suites/sources.tsv,
 * and the published statistics against those of the twins. */
#include <unistd.h>

#include "core/csr/stats.h"
#include "core/synth/input.h"
#include "support/csr.h"
#include "support/test.h"
#include "support/tsv.h"

#define DATA WLM_SOURCE_DIR "/../shared/data/"

static void needs_data(void) {
  if (access(DATA, R_OK)) test_missing("data", "data folder", DATA);
}

static void check_matrix(const tsv_table *manifest, int i) {
  char path[1000];
  snprintf(path, sizeof path, "%s%s", DATA, tsv_text(manifest, i, "file"));
  HOLD(wlmi_csr_host, csr, wlmi_input_read(path, &csr));
  assert_csr(&csr);
  GET(wlm_stats, s, wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &s));
  const char *name = tsv_text(manifest, i, "name");
  if (s.rows != tsv_int(manifest, i, "rows") || s.cols != tsv_int(manifest, i, "cols") ||
      s.nnz != tsv_int(manifest, i, "nnz") || s.longest != tsv_int(manifest, i, "max_nnz_row") ||
      s.empty_rows != tsv_int(manifest, i, "empty_rows"))
    fail_msg("%s: %lld x %lld, %lld entries, longest row %lld, %lld empty rows", name, (long long)s.rows,
             (long long)s.cols, (long long)s.nnz, (long long)s.longest, (long long)s.empty_rows);
  double cv_off = fabs(s.cv - tsv_double(manifest, i, "cv_nnz_row"));
  double mean_off = fabs(s.mean - tsv_double(manifest, i, "mean_nnz_row"));
  if (cv_off > 0.000501 || mean_off > 0.000501) /* the manifest has three decimals */
    fail_msg("%s: mean %.6f, cv %.6f", name, s.mean, s.cv);
  int pattern = !strcmp(tsv_text(manifest, i, "field"), "pattern");
  if (csr.values && pattern) fail_msg("%s is a pattern without repeated entries, yet has values", name);
  if (!csr.values && !pattern) fail_msg("%s lost its values", name);
}

TEST(real_matrices) {
  tsv_table manifest;
  needs_data();
  assert_true(tsv_read(DATA "MANIFEST.tsv", &manifest));
  assert_true(manifest.rows > 50);
  for (int i = 0; i < manifest.rows; i++) check_matrix(&manifest, i);
  print_message("%d matrices\n", manifest.rows);
  tsv_free(&manifest);
}

/* By these numbers users verify a matrix that they have downloaded. */
TEST(sources_describe_the_matrices) {
  tsv_table sources;
  int found = 0;
  needs_data();
  assert_true(tsv_read(WLM_SOURCE_DIR "/bench/suites/sources.tsv", &sources));
  for (int i = 0; i < sources.rows; i++) {
    const char *name = tsv_text(&sources, i, "name");
    char path[1000], fingerprint[40];
    wlm_stats s;
    FILE *file = NULL;
    for (int deep = 0; !file && deep < 2; deep++) {
      snprintf(path, sizeof path, DATA "%s%s%s.mtx.gz", deep ? name : "", deep ? "/" : "", name);
      file = fopen(path, "r");
    }
    if (!file) continue;
    fclose(file);
    found++;
    HOLD(wlmi_csr_host, csr, wlmi_input_read(path, &csr));
    assert_status(WLM_OK,
                  wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &s));
    snprintf(fingerprint, sizeof fingerprint, "%016llx%016llx", (unsigned long long)s.fingerprint[0],
             (unsigned long long)s.fingerprint[1]);
    if (s.rows != tsv_int(&sources, i, "rows") || s.cols != tsv_int(&sources, i, "cols") ||
        s.nnz != tsv_int(&sources, i, "nnz") || strcmp(fingerprint, tsv_text(&sources, i, "fingerprint")))
      fail_msg("%s: %lld x %lld, %lld entries, %s", name, (long long)s.rows, (long long)s.cols, (long long)s.nnz,
               fingerprint);
  }
  assert_true(found > 20);
  tsv_free(&sources);
}

/* The targets of tests/unit/twins.tsv are the published numbers. */
TEST(twins_have_the_published_targets) {
  static const char *const names[][2] = {{"twin:reddit", "Reddit"},
                                         {"twin:proteins", "ogbn-proteins"},
                                         {"twin:products", "ogbn-products"},
                                         {"twin:youtube", "com-youtube"},
                                         {"twin:roadnet-ca", "roadNet-CA"},
                                         {"twin:web-google", "web-Google"},
                                         {"twin:arxiv", "ogbn-arxiv (undirected)"},
                                         {"twin:arxiv-directed", "ogbn-arxiv (directed)"}};
  static const char *const columns[][2] = {
      {"rows", "rows"}, {"nnz", "nnz"}, {"cv", "cv_nnz_row"}, {"longest", "max_nnz_row"}};
  tsv_table published, pins;
  int found = 0;
  needs_data();
  assert_true(tsv_read(DATA "LARGE_GRAPH_STATS.tsv", &published));
  assert_true(tsv_read(WLM_SOURCE_DIR "/tests/unit/twins.tsv", &pins));
  for (int n = 0; n < 8; n++)
    for (int i = 0; i < pins.rows; i++)
      for (int k = 0; k < published.rows; k++) {
        if (strcmp(tsv_text(&pins, i, "input"), names[n][0]) || strcmp(tsv_text(&published, k, "name"), names[n][1]))
          continue;
        found++;
        for (int c = 0; c < 4; c++)
          assert_true(tsv_double(&pins, i, columns[c][0]) == tsv_double(&published, k, columns[c][1]));
      }
  assert_int_equal(found, 8);
  tsv_free(&pins);
  tsv_free(&published);
}
