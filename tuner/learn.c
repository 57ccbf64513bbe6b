/* Trains models on all measurements of the device's class in a context's database, and stores them there. */
#include "tuner/learn.h"

#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/problem/structs.h"
#include "db/measurement_set.h"
#include "warploom/warploom_tune.h"

static wlm_status keep(wlm_store *store, const char *device_class, const wlmi_model *model) {
  wlmi_model_record record = {.name = (char *)model->problems, .made_at = model->made_at};
  wlm_status status = wlmi_model_write(model, &record.data, &record.size);
  if (status == WLM_OK) status = wlmi_store_put_model(store, device_class, &record);
  wlmi_free(record.data);
  return status;
}

wlm_status wlmi_learn(wlm_context *context, wlmi_models *models) {
  const char *path = wlmi_context_database_path(context);
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  wlm_store *store = NULL;
  const char *device_class = wlmi_context_device_class(context);
  wlmi_measurement_set set = {0};
  wlm_status status;
  *models = (wlmi_models){0};
  if (!*path)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "training reads what was measured, and the context has no user database");
  if (access(path, F_OK)) return WLM_OK;
  WLM_TRY(wlmi_store_open(path, WLM_STORE_WRITE, &store));
  WLM_TRY(wlmi_measurement_set_add(&set, store, device_class));
  WLM_TRY(wlmi_models_train(wlmi_context_generator(context), &info->limits, set.records, set.count, models));
  for (int64_t i = 0; i < models->count; i++) WLM_TRY(keep(store, device_class, &models->models[i]));
  status = wlm_context_refresh(context);
done:
  if (status != WLM_OK) wlmi_models_release(models);
  wlmi_measurement_set_release(&set);
  wlmi_store_close(store);
  return status;
}

wlm_status wlm_train(wlm_context *context) {
  wlmi_models models;
  wlm_status status = wlmi_need("wlm_train", "context", context);
  if (status != WLM_OK) return status;
  const int threads = wlmi_threads_begin();
  status = wlmi_learn(context, &models);
  wlmi_threads_end(threads);
  wlmi_models_release(&models);
  return status;
}
