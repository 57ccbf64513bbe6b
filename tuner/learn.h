/* Trains models on the measurements in a context's database. */
#ifndef WLM_TUNER_LEARN_H
#define WLM_TUNER_LEARN_H

#include "runtime/context.h"
#include "tuner/train.h"

/* As wlm_train, and gives what it learned: wlmi_models_release. Where there is no database yet none is made. */
wlm_status wlmi_learn(wlm_context *context, wlmi_models *models);

#endif
