#include "bench/paper_steps.h"

#include <stdio.h>

enum { WARP = 32 };

const wlmi_paper_step wlmi_paper_steps[WLM_PAPER_STEPS] = {
    {"algorithm1", 0}, {"crc", 1}, {"cwm2", 2}, {"cwm4", 4}, {"cwm8", 8}};

void wlmi_paper_variant(const wlmi_paper_step *step, int64_t n, char name[WLM_VARIANT_NAME]) {
  const int threads = n >= 2 * WARP ? 256 : 128, columns = n >= WARP ? WARP : 16;
  if (!step->cf)
    snprintf(name, WLM_VARIANT_NAME, "row_naive/columns=%d,rows=%d,axis=units", columns, threads / columns);
  else
    snprintf(name, WLM_VARIANT_NAME, "row_crc/cf=%d,rows=%d", step->cf, threads / WARP);
}
