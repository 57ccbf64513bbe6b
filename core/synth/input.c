#include "core/synth/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/csr/matrix_market.h"
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
      "%s: %s; give a Matrix Market file, - for standard input, twin:NAME (reddit, proteins, products, "
      "arxiv, arxiv-directed, youtube, roadnet-ca, web-google), uniform:rows=R,d=D or synth:rows=R,d=D,cv=X",
      input, strerror(errno));
}

wlm_status wlmi_input_size(const char *input, int64_t *rows, int64_t *cols, int64_t *nnz) {
  if (is_synthetic(input)) return wlmi_twin_size(input, rows, cols, nnz);
  if (!strcmp(input, "-")) return wlmi_fail(WLM_ERR_UNSUPPORTED, "standard input can be read once only");
  const wlm_status status = check_there(input);
  return status == WLM_OK ? wlmi_matrix_market_size(input, rows, cols, nnz) : status;
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) {
  *out = (wlmi_csr_host){0};
  if (is_synthetic(input)) return wlmi_twin_make(input, out);
  const wlm_status status = check_there(input);
  return status == WLM_OK ? wlmi_matrix_market_read(input, out) : status;
}
