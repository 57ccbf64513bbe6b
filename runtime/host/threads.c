#include "runtime/host/threads.h"

#include <omp.h>
#include <pthread.h>

/* A product runs on several threads from this many elements on, counted as (non-zeros + rows) x N. Measured on two
 * cores of an x86-64 server (GCC 12, libgomp, f32 sums with 8 and 32 non-zeros per row; the best of 400 samples): two
 * threads begin to be faster between 70,000 and 600,000 elements, which take one thread 5 to 30 us. If another program
 * occupies a core, a product on two threads takes 4,000 us and more. */
static double share_from = 1 << 18;

static int forked; /* this process is the child of one that had a host device open */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result; /* status of pthread_atfork */

/* A fork copies OpenMP's bookkeeping but not its threads, so a parallel region in the child would wait for them
 * forever. */
static void child_forked(void) { forked = 1; }

static void watch_forks(void) { result = pthread_atfork(NULL, NULL, child_forked); }

wlm_status wlmi_host_threads_open(void) {
  pthread_once(&once, watch_forks);
  return result ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "host device: pthread_atfork") : WLM_OK;
}

int wlmi_host_threads(const struct wlm_args *args) {
  const double work = ((double)args->nnz + (double)args->rows) * (double)args->n;
  return forked || work < share_from ? 1 : omp_get_max_threads();
}

void wlmi_host_share_from(double work) { share_from = work; }
