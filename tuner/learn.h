/* A context's database, taught. */
#ifndef WLM_TUNER_LEARN_H
#define WLM_TUNER_LEARN_H

#include "runtime/context.h"
#include "tuner/train.h"

/* As wlm_train, and gives what it learned: wlm_models_release. Where there is no database yet none is made. */
wlm_status wlm_learn(wlm_context *context, wlm_models *models);

#endif
