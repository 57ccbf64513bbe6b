/* Reads every matrix of the shared data folder and compares it with its line in the manifest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/**/
#include <cmocka.h>

#include "core/csr/stats.h"
#include "core/synth/input.h"
#include "support/asserts.h"
#include "support/csr.h"
#include "support/tsv.h"

#define DATA WLM_SOURCE_DIR "/../shared/data/"

static void check_matrix(const tsv_table *manifest, int i) {
  char path[1000];
  wlmi_csr_host csr;
  wlm_stats s;
  snprintf(path, sizeof path, "%s%s", DATA, tsv_text(manifest, i, "file"));
  assert_status(WLM_OK, wlmi_input_read(path, &csr));
  assert_csr(&csr);
  assert_status(WLM_OK, wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &s));
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
  wlmi_csr_host_release(&csr);
}

static void real_matrices(void **state) {
  (void)state;
  tsv_table manifest;
  if (!tsv_read(DATA "MANIFEST.tsv", &manifest)) {
    print_message("no ../shared/data beside the project\n");
    skip();
  }
  assert_true(manifest.rows > 50);
  for (int i = 0; i < manifest.rows; i++) check_matrix(&manifest, i);
  print_message("%d matrices\n", manifest.rows);
  tsv_free(&manifest);
}

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

/* The suites' sources tell users without the data folder where the matrices come from and how to verify them. */
static void suites_have_sources(void **state) {
  (void)state;
  static const char *const suites[] = {"core", "papers", "sampled"};
  tsv_table sources;
  assert_true(tsv_read(WLM_SOURCE_DIR "/bench/suites/sources.tsv", &sources));
  for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
    char path[1000];
    snprintf(path, sizeof path, WLM_SOURCE_DIR "/bench/suites/%s.txt", suites[i]);
    suite_has_sources(&sources, path);
  }
  for (int i = 0; i < sources.rows; i++) {
    const char *name = tsv_text(&sources, i, "name");
    char path[1000], fingerprint[40];
    wlmi_csr_host csr;
    wlm_stats s;
    FILE *file = NULL;
    for (int deep = 0; !file && deep < 2; deep++) {
      snprintf(path, sizeof path, DATA "%s%s%s.mtx.gz", deep ? name : "", deep ? "/" : "", name);
      file = fopen(path, "r");
    }
    if (!file) continue;
    fclose(file);
    assert_status(WLM_OK, wlmi_input_read(path, &csr));
    assert_status(WLM_OK,
                  wlmi_stats_compute(csr.rowptr, WLM_I64, csr.rows, csr.cols, csr.nnz, csr.colind, WLM_I32, &s));
    snprintf(fingerprint, sizeof fingerprint, "%016llx%016llx", (unsigned long long)s.fingerprint[0],
             (unsigned long long)s.fingerprint[1]);
    if (s.rows != tsv_int(&sources, i, "rows") || s.cols != tsv_int(&sources, i, "cols") ||
        s.nnz != tsv_int(&sources, i, "nnz") || strcmp(fingerprint, tsv_text(&sources, i, "fingerprint")))
      fail_msg("%s: %lld x %lld, %lld entries, %s", name, (long long)s.rows, (long long)s.cols, (long long)s.nnz,
               fingerprint);
    wlmi_csr_host_release(&csr);
  }
  tsv_free(&sources);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_matrices), cmocka_unit_test(suites_have_sources)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
