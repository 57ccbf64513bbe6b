/* One implementation of the product, set up to be checked and timed: a variant, or an algorithm of a baseline. */
#pragma once

#include "tuner/verify.h"

typedef struct wlmi_method {
  char name[WLMI_VARIANT_NAME];
  wlm_status (*enqueue)(void *user, void *stream);
  void (*destroy)(void *user);
  void *user;
  wlm_plan *plan;         /* NULL for a baseline */
  int prepared;           /* 1 if the plan needs preparing; then it is prepared */
  char *failure;          /* why it could not be set up or run; NULL = it could */
  wlm_status status;      /* of the failure */
  double max_rel_err;     /* of the last checked run; NAN = there was none */
  double seconds, spread; /* of one call, once timed */
  int samples;            /* from which seconds and spread were computed */
  int64_t calls;          /* in a sample */
  int64_t candidate;      /* of a search: its index */
} wlmi_method;

/* Sets up a variant on the operands, with its own workspace and prepared memory, and prepares it. variant = NULL: the
 * one that a plan chooses, whose name the method then has. If it cannot be set up, that is no error: the method gets
 * a failure. */
void wlmi_method_variant(wlm_context *context, const wlmi_operands *operands, const char *variant, wlmi_method *method);
void wlmi_method_release(wlmi_method *method);          /* also of a zeroed one */
void *wlmi_method_workspace(const wlmi_method *method); /* of a variant */

/* Runs it once and waits; *seconds is the time by the clock. */
wlm_status wlmi_method_call(wlmi_device *device, const wlmi_method *method, double (*clock)(void), double *seconds);

/* Gives the method a failure, unless it has one; also if there is no memory for the reason. */
void wlmi_method_fail(wlmi_method *method, const char *reason);
void wlmi_method_free_failure(char *failure); /* NULL is allowed */
/* The same with the status and the detail text of the call that failed last. */
void wlmi_method_give_up(wlmi_method *method, wlm_status status);

/* Runs it once and compares C with float64; a wrong one gets a failure. Before the run of a variant, C and the
 * workspace are filled with NaN, and it must not write behind C, workspace and prepared memory, nor between C's columns
 * and ldc. A baseline's C is filled with large finite numbers instead, because it may multiply the old C by 0, and its
 * tolerance is larger, because cuSPARSE rounds the partial sums of 16-bit types. */
void wlmi_method_verify(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier);
/* Checks further calls: a few rows of four results, and the whole result of the last of five calls that are replayed as
 * in timing. */
void wlmi_method_verify_again(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier);
/* As wlmi_method_verify, but compares a few rows only (wlmi_verify_spots); *seconds is the host's time for the call.
 */
void wlmi_method_glance(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier, double *seconds);

enum { WLMI_FEW_SAMPLES = 16 }; /* the most of the times that are not those of a call with warm caches */

/* The host's time for wlm_plan_prepare until the device has finished: the median of several calls after a warm-up, as
 * cuSPARSE's preprocess is timed. 0 if nothing is prepared. */
wlm_status wlmi_method_time_prepare(const wlmi_method *method, int samples, double *seconds);

/* Seconds of one call, from one sample of `calls` calls; with `steady` after a warm-up. */
wlm_status wlmi_method_sample(wlmi_device *device, const wlmi_method *method, int64_t calls, int steady,
                              double *seconds);

/* The number of calls that take `target` seconds, 1 to 4096. */
int64_t wlmi_calls_for(double target, double seconds);

/* Times those without a failure, interleaved: the first sample of all, then the second of all, ... so that a drift of
 * the GPU's frequency affects all alike. A sample is `calls` calls; seconds and spread are over `samples` samples. If
 * `calls` calls would take more than 20 ms by an earlier timing, the sample has as many as fill 20 ms: launches cost
 * nothing there, and a baseline that is a hundred times slower would take a minute. A method that fails gets a
 * failure and is left out. */
wlm_status wlmi_methods_time(wlmi_device *device, wlmi_method *methods, int count, int64_t calls, int samples);

/* Times one alone after a warm-up, with as many calls per sample as fill `sample_seconds`. A failure is an error here.
 */
wlm_status wlmi_method_time(wlmi_device *device, wlmi_method *method, double sample_seconds, int samples);

/* Times one call with cold caches: the flush buffer is overwritten before each sample. */
wlm_status wlmi_method_time_cold(wlmi_device *device, const wlmi_method *method, const wlmi_buffer *flush, int samples,
                                 double *seconds, double *spread);
