/* One way of computing the product that is being measured: a variant of ours, or a baseline's algorithm. */
#ifndef WLM_TUNER_ENTRANT_H
#define WLM_TUNER_ENTRANT_H

#include "tuner/verify.h"

typedef struct wlmi_entrant {
  char name[WLM_VARIANT_NAME];
  wlm_status (*enqueue)(void *user, void *stream);
  void (*destroy)(void *user);
  void *user;
  wlm_plan *plan;         /* NULL for a baseline */
  int prepared;           /* 1 where the plan needs preparing, which was done */
  char *failure;          /* why it could not be set up or run; NULL = it could */
  wlm_status status;      /* of the failure */
  double max_rel_err;     /* of the last checked run; NAN = there was none */
  double seconds, spread; /* of one call, once timed */
  int samples;            /* that seconds and spread are made of */
  int64_t calls;          /* in a sample */
} wlmi_entrant;

/* A variant over the operands' memory, with a workspace and prepared memory of its own, and prepared; NULL = the one
 * the dispatcher chooses, whose name is then found in the entrant. An entrant that cannot be set up is no error: it has
 * a failure. */
void wlmi_entrant_variant(wlm_context *context, const wlmi_operands *operands, const char *variant,
                          wlmi_entrant *entrant);
void wlmi_entrant_release(wlmi_entrant *entrant);          /* also of a zeroed one */
void *wlmi_entrant_workspace(const wlmi_entrant *entrant); /* of a variant */

/* Gives the entrant a failure, unless it has one, also where no memory is left for the reason. */
void wlmi_entrant_fail(wlmi_entrant *entrant, const char *reason);
void wlmi_entrant_free_failure(char *failure); /* NULL is allowed */
/* The same, with the status and the detail text of the call that just failed. */
void wlmi_entrant_give_up(wlmi_entrant *entrant, wlm_status status);

/* Runs it once, a variant of ours over NaN in C and in its workspace, and compares C with float64; a variant may write
 * neither behind C, workspace and prepared memory nor between C's columns and ldc. A baseline's C is
 * full of large finite numbers before, so that one which multiplies the old C by 0 is not called wrong, and it has a
 * leeway: cuSPARSE rounds the partial sums of half types. An entrant that is wrong has a failure. */
void wlmi_entrant_verify(wlmi_entrant *entrant, wlmi_operands *operands, wlmi_verifier *verifier);
/* Whether it is right in further calls: a few rows of four results, and the whole result of the last of five calls that
 * are replayed as in timing. */
void wlmi_entrant_verify_again(wlmi_entrant *entrant, wlmi_operands *operands, wlmi_verifier *verifier);
/* As wlmi_entrant_verify, with a few rows only (wlmi_verify_spots); tells what that one call took on the host's clock.
 */
void wlmi_entrant_glance(wlmi_entrant *entrant, wlmi_operands *operands, wlmi_verifier *verifier, double *seconds);

/* Seconds that wlm_plan_prepare takes until the device is done: the median of several after one that warms up, on the
 * host's clock as cuSPARSE's preprocess is timed. 0 where nothing is prepared. */
wlm_status wlmi_entrant_time_prepare(const wlmi_entrant *entrant, int samples, double *seconds);

/* Seconds of one call out of one sample of `calls` calls; warmed up before where `steady` says so. */
wlm_status wlmi_entrant_sample(wlmi_device *device, const wlmi_entrant *entrant, int64_t calls, int steady,
                               double *seconds);

/* As many as fill the target, 1 to 4096. */
int64_t wlmi_calls_for(double target, double seconds);

/* Times those without a failure, interleaved: the first sample of all, the second of all, ... so that a drift of the
 * clock meets all alike. A sample is `calls` calls; seconds and spread are over `samples` samples. One that is known
 * from before (seconds) to need more than 20 ms for so many calls gets as many as fill 20 ms: what a launch costs is
 * long nothing there, and a baseline a hundred times slower would take a minute. An entrant that fails on the way is
 * marked so and left out. */
wlm_status wlmi_entrants_time(wlmi_device *device, wlmi_entrant *entrants, int count, int64_t calls, int samples);

/* Times one alone, warmed up before, with as many calls in a sample as fill `sample_seconds`. An entrant that fails is
 * an error here. */
wlm_status wlmi_entrant_time(wlmi_device *device, wlmi_entrant *entrant, double sample_seconds, int samples);

/* Of one call that finds nothing of its operands in cache: the flush buffer is overwritten before each sample. */
wlm_status wlmi_entrant_time_cold(wlmi_device *device, const wlmi_entrant *entrant, const wlmi_buffer *flush,
                                  int samples, double *seconds, double *spread);

#endif
