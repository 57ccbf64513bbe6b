#include "core/synth/input.h"

#include <errno.h>
#include <string.h>
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

static wlm_status make_synthetic(const char *name, const wlmi_size_check *check, wlmi_csr_host *out) {
  int64_t rows, cols, nnz;
  wlm_status status = check ? wlmi_twin_size(name, &rows, &cols, &nnz) : WLM_OK;
  if (check && status == WLM_OK) status = check->fits(check->user, rows, cols, nnz);
  return status == WLM_OK ? wlmi_twin_make(name, out) : status;
}

typedef wlm_status parse_fn(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out);

static int ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), cut = strlen(end);
  return length >= cut && !strcmp(text + length - cut, end);
}

/* A file with the name of Matrix Market that lacks its banner is a mistake and no edge list. */
static parse_fn *parser_of(const char *path, const char *start, size_t size) {
  if (size >= 4 && (!memcmp(start, "PK\3\4", 4) || !memcmp(start, "PK\5\6", 4))) return wlmi_scipy_parse;
  if (size >= 2 && !memcmp(start, "%%", 2)) return wlmi_matrix_market_parse;
  return ends_with(path, ".mtx") || ends_with(path, ".mtx.gz") ? wlmi_matrix_market_parse : wlmi_edge_list_parse;
}

static wlm_status read_file(const char *path, const wlmi_size_check *check, wlmi_csr_host *out) {
  wlmi_lines lines;
  const char *start;
  size_t size;
  wlm_status status;
  WLM_TRY(wlmi_lines_open(path, &lines));
  WLM_TRY(wlmi_lines_peek(&lines, 4, &start, &size));
  status = parser_of(path, start, size)(&lines, check, out);
done:
  wlmi_lines_close(&lines);
  return status;
}

wlm_status wlmi_input_read_checked(const char *input, const wlmi_size_check *check, wlmi_csr_host *out) {
  *out = (wlmi_csr_host){0};
  if (is_synthetic(input)) return make_synthetic(input, check, out);
  const wlm_status status = check_there(input);
  return status == WLM_OK ? read_file(input, check, out) : status;
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) { return wlmi_input_read_checked(input, NULL, out); }
