/* warploom, tuning: measures kernels on your matrices and keeps the results for wlm_plan_create and wlm_spmm.
 *
 *   wlm_tune                  measures all candidates for one problem and matrix; blocks
 *   wlm_train                 fits the cost model to everything that was measured
 *   wlm_plan_create_online    a plan that tries alternative kernels on a small share of its calls
 *
 * Conventions (ownership, errors, structs, streams) are those of warploom.h. */
#ifndef WARPLOOM_WARPLOOM_TUNE_H
#define WARPLOOM_WARPLOOM_TUNE_H

#include "warploom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tuning: always an explicit act ------------------------------------------------------------ */

typedef struct wlm_candidate_result {
  const char *variant;
  int failed; /* then `reason` says why, and the times are 0 */
  const char *reason;
  double seconds; /* median of the samples, one call */
  double spread;  /* (third quartile - first) / median; on a busy host at least the share of the time that was lost */
  /* Effective bandwidth in 1e9 bytes a second, as if no cache held any of B. Counted are the colind, the values and a
   * row of B for each edge, and the rowptr and a row of C for each row. */
  double gather_gbs;
  double max_rel_err;     /* against float64, relative to sum |a b| */
  double prepare_seconds; /* of preparing its plan once; 0 = it needs none */
  int samples;            /* 1 after screening; more where it was among the best and timed again */
  double cold_seconds;    /* one call that finds nothing in cache; 0 = not measured */
} wlm_candidate_result;

typedef struct wlm_tune_options {
  size_t size;
  const char *matrix_name;   /* kept with the measurements; NULL = unnamed */
  double budget_seconds;     /* 0 = all candidates; otherwise, if the budget is short, candidates that the cost model
                              * predicts to be slow are left out */
  double min_sample_seconds; /* a sample of the finals repeats the call until it lasts this long */
  int samples;               /* of each finalist, 1 to 10,000; fewer where the budget is short, down to 3 */
  uint64_t seed;             /* order of candidates without a prediction; operands */
  /* Called after each candidate is stored, and with last = NULL a few times a second while kernels compile. The
   * finalists are reported again at the end. Return non-zero to stop: measurements are kept, and those stored since the
   * last report are still reported. May be NULL. */
  int (*progress)(void *user, int64_t done, int64_t total, const wlm_candidate_result *last);
  void *user;
  int again; /* 1 = also measure kernels that were already measured and have not changed */
} wlm_tune_options;
#define WLM_TUNE_OPTIONS_INIT \
  { sizeof(wlm_tune_options), NULL, 0.0, 0.001, 9, 1, NULL, NULL, 0 }

/* Measures every valid candidate for the problem on this matrix that the database does not have yet, times the best
 * again, checks results against float64 and stores every measurement in the user database; then refreshes the context.
 * The winner is always a kernel that was timed again. args gives what a call has besides the problem (alpha, beta, ldb,
 * ldc, seed and stream; its other pointers are not read); NULL = the defaults. Blocking; uses device memory for B and
 * C. Two tunings on one device take turns. A candidate that fails by its own fault (a wrong result, a source that does
 * not compile) is recorded as such and is no error; after a temporary failure, such as a full disk, the next wlm_tune
 * tries it again. A kernel wins only after every output was compared whole: with float64 or, of large problems, with a
 * checksum of the columns of C or the result of a simple kernel in f64. Where there is no memory for the latter, the
 * log says so, and only some rows are compared. Errors: WLM_ERR_CANCELLED (progress said so), WLM_ERR_MISMATCH or the
 * first failure (no kernel passed, and the matrix stays untuned), WLM_ERR_UNSUPPORTED, WLM_ERR_INVALID_ARGUMENT,
 * WLM_ERR_DATABASE, WLM_ERR_DEVICE, WLM_ERR_NO_COMPILER. */
WLM_API wlm_status wlm_tune(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                            const wlm_execute_args *args, const wlm_tune_options *options);

/* Fits the cost model to all measurements of this device class in the user database, stores it there and refreshes the
 * context. Takes about a second; worth it once many matrices were tuned, and after an import. With fewer than 8
 * matrices it does nothing, which is no error. Errors: WLM_ERR_INVALID_ARGUMENT (no user database), WLM_ERR_DATABASE,
 * WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_train(wlm_context *context);

/* ---- online tuning: a plan that measures during real calls ---------------------------------------- */

typedef struct wlm_online_options {
  size_t size;
  double share;            /* of the calls that may run another kernel, above 0 to 0.5 */
  double slowdown;         /* bound: trials lose less than this share of the time of all calls; after a trial that took
                            * longer than expected the plan waits until the share is met again */
  double abandon;          /* a kernel is given up if it takes more than this many times the current one's time; above 1
                            */
  int challengers;         /* how many other kernels are tried at most, 0 to 8, the runners-up of the choice first */
  const char *first;       /* the kernel to begin with; NULL = the one that wlm_plan_create chooses */
  const char *matrix_name; /* kept with the measurements; NULL = unnamed */
} wlm_online_options;
#define WLM_ONLINE_OPTIONS_INIT \
  { sizeof(wlm_online_options), 1.0 / 16, 0.02, 2.0, 4, NULL, NULL }

/* Creates a plan that runs alternative kernels on a small share of its calls and switches to the fastest.
 *
 * Chooses, compiles, prepares and checks all kernels that will be tried; nothing is compiled or allocated later.
 * Blocking. Each kernel has its own workspace and prepared memory, which the plan owns: wlm_plan_workspace_size and
 * wlm_plan_prepared_size are 0. While the plan is created one more B and C are allocated, for large problems also in
 * f64. Without room for these, or without a compiler, the plan has one kernel. With expected_calls = 1 no kernel that
 * must be prepared is tried, and with deterministic = 1 only those whose result has the same bits as the first one's.
 * options may be NULL.
 *
 * Execute it with wlm_plan_execute: no malloc, sync, file access or JIT; on a GPU a later call reads the times. In a
 * stream that is being captured the current kernel is enqueued and nothing is tried; such a graph uses the plan's
 * memory. Such a plan is for one thread and one stream at a time, and cannot be rebound. Gradients by argmax run as in
 * any plan. Errors: as wlm_plan_create, and WLM_ERR_MISMATCH. */
WLM_API wlm_status wlm_plan_create_online(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                          const wlm_online_options *options, wlm_plan **plan);

typedef struct wlm_online_state {
  size_t size;
  const char *variant; /* the current kernel; lives as long as the plan */
  int64_t calls, trials, replacements;
  int challengers;               /* alternative kernels that could be set up */
  int settled;                   /* nothing is left to try */
  double first_seconds, seconds; /* medians of one call: of the first kernel at the beginning, of the current one;
                                  * 0 = not known yet */
  double lost_seconds;           /* by trials */
} wlm_online_state;
#define WLM_ONLINE_STATE_INIT \
  { sizeof(wlm_online_state), NULL, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0 }
WLM_API wlm_status wlm_plan_online_state(const wlm_plan *plan, wlm_online_state *state);

/* Stores the decision, and the context's list of recorded problems, in the user database, if there is one. The times
 * become measurements with the clock "online". They count like screening runs: they decide for this matrix until it is
 * tuned. Then refreshes the context. Blocking; later executes run the current kernel and try nothing. A second close
 * does nothing. wlm_plan_destroy closes a plan that was not closed and logs errors. Errors: WLM_ERR_DATABASE,
 * WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY; the plan is closed all the same. */
WLM_API wlm_status wlm_plan_online_close(wlm_plan *plan);

WLM_API wlm_status wlm_tune_options_init(void *options, size_t size);
WLM_API wlm_status wlm_online_options_init(void *options, size_t size);
WLM_API wlm_status wlm_online_state_init(void *state, size_t size);

#ifdef __cplusplus
}
#endif
#endif
