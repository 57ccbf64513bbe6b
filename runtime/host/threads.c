#include "runtime/host/threads.h"

#include "core/base/threads.h"

/* A product runs on several threads from this many elements on, counted as (non-zeros + rows) x N. Measured on two
 * cores of an x86-64 server (GCC 12, libgomp, f32 sums with 8 and 32 non-zeros per row; the best of 400 samples): two
 * threads begin to be faster between 70,000 and 600,000 elements, which take one thread 5 to 30 us. If another program
 * occupies a core, a product on two threads takes 4,000 us and more. */
static double share_from = 1 << 18;

int wlmi_host_threads(const struct wlm_args *args) {
  const double work = ((double)args->nnz + (double)args->rows) * (double)args->n;
  return work < share_from ? 1 : wlmi_threads();
}

void wlmi_host_share_from(double work) { share_from = work; }
