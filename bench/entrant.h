/* One way of computing the product that is being measured: a variant of ours or a rival's algorithm. */
#ifndef WLM_BENCH_ENTRANT_H
#define WLM_BENCH_ENTRANT_H

#include "tuner/verify.h"

typedef struct wlm_entrant {
  char name[WLM_VARIANT_NAME];
  wlm_status (*enqueue)(void *user, void *stream);
  void (*destroy)(void *user);
  void *user;
  wlm_plan *plan;         /* NULL for a rival */
  int prepared;           /* 1 where the plan needs preparing, which was done */
  char *failure;          /* why it could not be set up or run; NULL = it could */
  double seconds, spread; /* of one call, once timed */
} wlm_entrant;

/* A variant over the operands' memory, with a workspace and prepared memory of its own, and prepared; NULL = the one
 * the dispatcher chooses, whose name is then found in the entrant. An entrant that cannot be set up is no error: it has
 * a failure. */
void wlm_entrant_variant(wlm_context *context, const wlm_operands *operands, const char *variant, wlm_entrant *entrant);
/* One of cuSPARSE's ways over the operands' memory. *preprocess_seconds may be NULL. */
void wlm_entrant_cusparse(const wlm_operands *operands, int way, wlm_entrant *entrant, double *preprocess_seconds);
void wlm_entrant_release(wlm_entrant *entrant); /* also of a zeroed one */

/* Gives the entrant a failure, unless it has one. */
void wlm_entrant_fail(wlm_entrant *entrant, const char *reason);

/* Runs it once, a variant of ours over NaN in C and in its workspace, and compares C with float64. A rival's C is full
 * of large finite numbers before, so that one which multiplies the old C by 0 is not called wrong. An entrant that is
 * wrong has a failure. */
void wlm_entrant_verify(wlm_entrant *entrant, const wlm_operands *operands, wlm_verifier *verifier,
                        double *max_rel_err);

/* Seconds that wlm_plan_prepare takes until the device is done: the median of several after one that warms up, on the
 * host's clock as cuSPARSE's preprocess is timed. 0 where nothing is prepared. */
wlm_status wlm_entrant_time_prepare(const wlm_entrant *entrant, double *seconds);

/* Seconds of one call out of one sample of `calls` calls. */
wlm_status wlm_entrant_sample(wlm_device *device, const wlm_entrant *entrant, int64_t calls, double *seconds);

/* Times those without a failure, interleaved: the first sample of all, the second of all, ... so that a drift of the
 * clock meets all alike. A sample is `calls` calls; seconds and spread are over `samples` samples. One that is known
 * from before (seconds) to need more than 20 ms for so many calls gets as many as fill 20 ms: what a launch costs is
 * long nothing there, and a rival a hundred times slower would take a minute. An entrant that fails on the way is
 * marked so and left out. */
wlm_status wlm_entrants_time(wlm_device *device, wlm_entrant *entrants, int count, int64_t calls, int samples);

#endif
