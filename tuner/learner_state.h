/* A learner's parts, for its files alone. */
#ifndef WLM_TUNER_LEARNER_STATE_H
#define WLM_TUNER_LEARNER_STATE_H

#include "common/hash.h"
#include "runtime/dispatch/plan.h"
#include "tuner/entrant.h"
#include "tuner/online_policy.h"

typedef struct wlmi_contender {
  wlmi_entrant entrant; /* with a workspace and prepared memory of its own */
  char source_hash[WLM_HASH_HEX];
  double prepare_seconds;
  double look; /* seconds of a call, before any real one */
} wlmi_contender;

struct wlm_learner {
  wlm_context *context;
  wlmi_device *device;
  wlm_learner_options options;
  char *matrix_name;
  char problem[WLM_SPEC_KEY];
  int64_t n;
  wlmi_operands operands;                           /* while the learner is made */
  wlmi_contender contenders[WLM_ONLINE_CONTENDERS]; /* the first is what the chooser, or the caller, wanted */
  int count;
  wlmi_online online;
  int is_learning, is_closed;
  wlmi_watch *watches[2]; /* of the timed calls whose times are not known yet, in order: */
  int timed[2], pending;  /* whose they are */
};

/* Fills the contenders: the first or a failure, and as many challengers as there are to be had. */
wlm_status wlmi_learner_gather(wlm_learner *learner, const wlm_matrix *matrix, const wlm_problem *problem);

#endif
