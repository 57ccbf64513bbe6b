#include "synth/input.h"

#include <string.h>

#include "csr/matrix_market.h"
#include "synth/twin.h"

/* What an input may look like, and who reads it. */
static const struct {
  const char *prefix, *suffix;
  wlm_status (*read)(const char *input, wlmi_csr_host *out);
  wlm_status (*size)(const char *input, int64_t *rows, int64_t *cols, int64_t *nnz);
} kinds[] = {
    {"twin:", "", wlmi_twin_make, wlmi_twin_size},
    {"uniform:", "", wlmi_twin_make, wlmi_twin_size},
    {"synth:", "", wlmi_twin_make, wlmi_twin_size},
    {"", ".mtx", wlmi_matrix_market_read, wlmi_matrix_market_size},
    {"", ".mtx.gz", wlmi_matrix_market_read, wlmi_matrix_market_size},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int matches(const char *input, const char *prefix, const char *suffix) {
  size_t size = strlen(input), tail = strlen(suffix);
  return !strncmp(input, prefix, strlen(prefix)) && size >= tail && !strcmp(input + size - tail, suffix);
}

/* KINDS where it is none of them. */
static size_t kind_of(const char *input) {
  size_t kind = 0;
  while (kind < KINDS && !matches(input, kinds[kind].prefix, kinds[kind].suffix)) kind++;
  return kind;
}

static wlm_status not_understood(const char *input) {
  return wlmi_fail(
      WLM_ERR_INVALID_ARGUMENT,
      "input '%s' is not understood; give a Matrix Market file (.mtx or .mtx.gz), twin:NAME (reddit, "
      "proteins, products, arxiv, youtube, roadnet-ca, web-google), uniform:rows=R,d=D or synth:rows=R,d=D,cv=X",
      input);
}

wlm_status wlmi_input_size(const char *input, int64_t *rows, int64_t *cols, int64_t *nnz) {
  const size_t kind = kind_of(input);
  return kind < KINDS ? kinds[kind].size(input, rows, cols, nnz) : not_understood(input);
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) {
  const size_t kind = kind_of(input);
  *out = (wlmi_csr_host){0};
  return kind < KINDS ? kinds[kind].read(input, out) : not_understood(input);
}
