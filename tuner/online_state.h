/* The mode of a plan that tunes online, for its files alone. */
#ifndef WLM_TUNER_ONLINE_STATE_H
#define WLM_TUNER_ONLINE_STATE_H

#include "common/hash.h"
#include "runtime/dispatch/plan.h"
#include "tuner/entrant.h"
#include "tuner/online_policy.h"
#include "warploom/warploom_tune.h"

typedef struct wlmi_contender {
  wlmi_entrant entrant; /* with a workspace and prepared memory of its own */
  char source_hash[WLM_HASH_HEX];
  double prepare_seconds;
  double look; /* seconds of a call, before any real one */
} wlmi_contender;

typedef struct wlmi_online_mode {
  wlm_context *context;
  wlmi_device *device;
  wlm_online_options options;
  char *matrix_name;
  char problem[WLM_SPEC_KEY];
  int64_t n;
  wlmi_operands operands;                           /* while the plan is created */
  wlmi_contender contenders[WLM_ONLINE_CONTENDERS]; /* the first is chosen, or named by the caller */
  int count;
  wlmi_online online;
  int wants_argmax, is_tuning, is_closed;
  wlmi_watch *watches[2]; /* of the timed calls whose times are not known yet, in order: */
  int timed[2], pending;  /* whose they are */
} wlmi_online_mode;

/* Fills the contenders: the first or a failure, and as many challengers as there are to be had. */
wlm_status wlmi_online_gather(wlmi_online_mode *mode, const wlm_matrix *matrix, const wlm_problem *problem);

#endif
