#include "synth/input.h"

#include <string.h>

#include "csr/matrix_market.h"
#include "synth/twin.h"

/* The forms of an input and their readers. */
static const struct {
  const char *prefix, *suffix;
  wlm_status (*read)(const char *input, wlmi_csr_host *out);
} kinds[] = {
    {"twin:", "", wlmi_twin_make},         {"uniform:", "", wlmi_twin_make},         {"synth:", "", wlmi_twin_make},
    {"", ".mtx", wlmi_matrix_market_read}, {"", ".mtx.gz", wlmi_matrix_market_read},
};

static int matches(const char *input, const char *prefix, const char *suffix) {
  size_t size = strlen(input), tail = strlen(suffix);
  return !strncmp(input, prefix, strlen(prefix)) && size >= tail && !strcmp(input + size - tail, suffix);
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) {
  *out = (wlmi_csr_host){0};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (matches(input, kinds[i].prefix, kinds[i].suffix)) return kinds[i].read(input, out);
  return wlmi_fail(
      WLM_ERR_INVALID_ARGUMENT,
      "input '%s' is not understood; give a Matrix Market file (.mtx or .mtx.gz), twin:NAME (reddit, "
      "proteins, products, arxiv, youtube, roadnet-ca, web-google), uniform:rows=R,d=D or synth:rows=R,d=D,cv=X",
      input);
}
