#include "tuner/kernel_fit.h"

/* Local memory of a thread. A few values cost little because they stay in L1; 64 words are the accumulators of a row.
 */
static const int64_t most_local_bytes = 256;

int wlmi_kernel_spills(const wlmi_kernel_facts *facts) { return facts->local_bytes > most_local_bytes; }

void wlmi_kernel_refusal(const wlmi_kernel_facts *facts, unsigned int threads, int spared, wlmi_text *reason) {
  if (!facts->blocks)
    wlmi_text_printf(reason,
                     "no block of it fits a multiprocessor: %u threads of %d registers, %lld bytes of shared memory",
                     threads, facts->registers, (long long)facts->shared_bytes);
  else if (spared && wlmi_kernel_spills(facts))
    wlmi_text_printf(reason, "not timed: each thread keeps %lld bytes in memory that do not fit its %d registers",
                     (long long)facts->local_bytes, facts->registers);
}
