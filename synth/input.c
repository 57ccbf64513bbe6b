#include "synth/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "csr/matrix_market.h"
#include "synth/twin.h"

static int is_synthetic(const char *input) {
  static const char *const kinds[] = {"twin:", "uniform:", "synth:"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strncmp(input, kinds[i], strlen(kinds[i]))) return 1;
  return 0;
}

wlm_status wlmi_input_read(const char *input, wlmi_csr_host *out) {
  *out = (wlmi_csr_host){0};
  if (is_synthetic(input)) return wlmi_twin_make(input, out);
  if (strcmp(input, "-") && access(input, F_OK))
    return wlmi_fail(errno == ENOENT ? WLM_ERR_NOT_FOUND : WLM_ERR_IO,
                     "%s: %s; give a Matrix Market file, - for standard input, twin:NAME (reddit, proteins, products, "
                     "arxiv, youtube, roadnet-ca, web-google), uniform:rows=R,d=D or synth:rows=R,d=D,cv=X",
                     input, strerror(errno));
  return wlmi_matrix_market_read(input, out);
}
