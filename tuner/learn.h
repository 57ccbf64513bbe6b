/* Trains models on the measurements in a context's database. */
#pragma once

#include "runtime/context.h"
#include "tuner/train.h"

/* As wlm_train, and returns the models; release them with wlmi_models_release. Creates no database. */
wlm_status wlmi_learn(wlm_context *context, wlmi_models *models);
