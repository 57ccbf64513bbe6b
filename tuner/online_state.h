/* The state of a plan that tunes online; only for tuner/online*.c. */
#pragma once

#include "core/base/hash.h"
#include "runtime/dispatch/plan.h"
#include "tuner/method.h"
#include "tuner/online_policy.h"
#include "warploom/warploom_tune.h"

typedef struct wlmi_contender {
  wlmi_method method; /* with its own workspace and prepared memory */
  double prepare_seconds;
  double estimate; /* seconds of a call, measured before the first real one */
} wlmi_contender;

typedef struct wlmi_online_mode {
  wlm_context *context;
  wlmi_device *device;
  wlm_online_options options;
  char *matrix_name;
  char problem[WLMI_SPEC_KEY];
  int64_t n;
  wlmi_operands operands;                            /* while the plan is created */
  wlmi_contender contenders[WLMI_ONLINE_CONTENDERS]; /* the first one is the selection's choice, or named by the caller
                                                      */
  int count;
  wlmi_online online;
  int is_tuning, is_closed;
  wlmi_watch *watches[2]; /* of the timed calls whose times are not known yet, in order: */
  int timed[2], pending;  /* the contenders that they time */
} wlmi_online_mode;

/* Fills the contenders: the first one, or an error, and as many challengers as can be set up. */
wlm_status wlmi_online_gather(wlmi_online_mode *mode, const wlm_matrix *matrix, const wlm_problem *problem);
