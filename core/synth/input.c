#include "core/synth/input.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/csr/formats.h"
#include "core/synth/twin.h"

static int is_synthetic(const char *input) {
  static const char *const kinds[] = {"twin:", "uniform:", "synth:"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strncmp(input, kinds[i], strlen(kinds[i]))) return 1;
  return 0;
}

static wlm_status check_there(const char *input) {
  if (!strcmp(input, "-") || !access(input, F_OK)) return WLM_OK;
  return wlmi_fail(
      errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO,
      "%s: %s; give a Matrix Market file, an edge list, a file of scipy.sparse.save_npz, - for standard input, "
      "twin:NAME "
      "(reddit, proteins, products, arxiv, arxiv-directed, youtube, roadnet-ca, web-google), uniform:rows=R,d=D or "
      "synth:rows=R,d=D,cv=X",
      input, strerror(errno));
}

static wlm_status check_synthetic(const char *name, const wlmi_size_check *check) {
  int64_t rows, cols, nnz;
  const wlm_status status = wlmi_twin_size(name, &rows, &cols, &nnz);
  return status == WLM_OK && check ? check->fits(check->user, rows, cols, nnz) : status;
}

wlm_status wlmi_input_check(const char *input, const wlmi_size_check *check) {
  struct stat file;
  wlmi_csr_host csr;
  if (is_synthetic(input)) return check_synthetic(input, check);
  WLM_CHECK(check_there(input));
  if (!strcmp(input, "-") || (!stat(input, &file) && !S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode))) return WLM_OK;
  const wlm_status status = wlmi_matrix_file_read(input, check, &csr);
  wlmi_csr_host_release(&csr);
  return status;
}

wlm_status wlmi_input_read_checked(const char *input, const wlmi_size_check *check, wlmi_csr_host *out) {
  *out = (wlmi_csr_host){0};
  if (is_synthetic(input)) {
    if (check) WLM_CHECK(check_synthetic(input, check));
    return wlmi_twin_make(input, out);
  }
  WLM_CHECK(check_there(input));
  return wlmi_matrix_file_read(input, check, out);
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) { return wlmi_input_read_checked(input, NULL, out); }

/* ---- the name of a stand-in ---- */

enum { BILLION = 1000000000 };
static const double max_cv = 1000;

static int64_t at_most(int64_t value, int64_t limit) { return value < limit ? value : limit; }

/* Generated rows have distinct columns, on average at most half of all; a denser matrix is made uniform. */
void wlmi_stand_in_name(const wlm_stats *s, char name[WLMI_STAND_IN_NAME]) {
  const int64_t rows = s->rows > 0 ? s->rows : 1, longest = at_most(s->longest, s->cols);
  const int64_t ceiling = (s->nnz + rows - 1) / rows;
  if (2 * ceiling > s->cols || (double)s->nnz > (double)rows * (double)longest) {
    snprintf(name, WLMI_STAND_IN_NAME, "uniform:rows=%lld,cols=%lld,d=%lld", (long long)rows, (long long)s->cols,
             (long long)at_most((s->nnz + rows / 2) / rows, s->cols));
    return;
  }
  /* rounded up, so that rows * d is the non-zeros and not one less */
  const __int128 density = ((__int128)s->nnz * BILLION + rows - 1) / rows;
  const int64_t cv = (int64_t)(fmin(s->cv, max_cv) * 1e6 + 0.5);
  snprintf(name, WLMI_STAND_IN_NAME, "synth:rows=%lld,cols=%lld,d=%lld.%09lld,cv=%lld.%06lld,longest=%lld",
           (long long)rows, (long long)s->cols, (long long)(density / BILLION), (long long)(density % BILLION),
           (long long)(cv / 1000000), (long long)(cv % 1000000), (long long)longest);
}
