/* What several tunings share: the store, its measurements at the beginning, the candidates of a spec with their known
 * times, and the buffer that empties caches. */
#include "tuner/tuner.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "tuner/known.h"
#include "tuner/operands.h"

struct wlmi_tuner {
  wlm_context *context;
  wlm_store *store;
  wlmi_known *known; /* NULL if everything is measured again */
  wlmi_buffer flush;
  int flush_tried;
};

static wlm_status load_known(wlmi_tuner *tuner) {
  const wlmi_device_info *info = &wlmi_context_device(tuner->context)->info;
  return wlmi_known_load(tuner->store, wlmi_context_device_class(tuner->context), info->compiler, info->driver,
                         &tuner->known);
}

wlm_status wlmi_tuner_create(wlm_context *context, int again, wlmi_tuner **out) {
  const wlmi_device_info *info = &wlmi_context_device(context)->info;
  const char *path = wlmi_context_database_path(context);
  wlm_status status;
  *out = NULL;
  if (!*info->compiler)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "tuning compiles kernels, and there is no compiler for the device %s",
                     info->name);
  if (!*path)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "the context has no user database, and tuning stores what it measures; name a file for it, as in "
                     "--db tuned.db");
  wlmi_tuner *tuner = wlmi_alloc_zero(1, sizeof *tuner);
  if (!tuner) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a tuner");
  tuner->context = context;
  WLM_TRY(wlmi_store_open(path, WLMI_STORE_WRITE, &tuner->store));
  if (!again) WLM_TRY(load_known(tuner));
  *out = tuner;
  tuner = NULL;
done:
  wlmi_tuner_destroy(tuner);
  return status;
}

wlm_status wlmi_tuner_reread(wlmi_tuner *tuner) {
  wlmi_known *before = tuner->known;
  if (!before) return WLM_OK; /* everything is measured again */
  tuner->known = NULL;
  const wlm_status status = load_known(tuner);
  if (status == WLM_OK)
    wlmi_known_destroy(before);
  else
    tuner->known = before;
  return status;
}

void wlmi_tuner_destroy(wlmi_tuner *tuner) {
  if (!tuner) return;
  wlmi_device *device = wlmi_context_device(tuner->context);
  device->ops->release(device, tuner->flush.memory);
  wlmi_known_destroy(tuner->known);
  wlmi_store_close(tuner->store);
  wlmi_free(tuner);
}

wlm_store *wlmi_tuner_store(const wlmi_tuner *tuner) { return tuner->store; }
wlm_context *wlmi_tuner_context(const wlmi_tuner *tuner) { return tuner->context; }

/* ---- candidates --------------------------------------------------------------------------------------- */

wlm_status wlmi_tuner_candidates(wlmi_tuner *tuner, const wlmi_spec *spec, wlmi_hash known_key, wlmi_timed **candidates,
                                 int64_t *count) {
  const wlmi_device_info *info = &wlmi_context_device(tuner->context)->info;
  const wlmi_candidate_list *list;
  wlm_status status;
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(tuner->context), spec, &info->limits, &list));
  if (!list->count)
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "no family has a kernel for this problem on the device %s", info->name));
  WLM_TRY(wlmi_alloc_array(list->count, sizeof **candidates, "candidates", (void **)candidates));
  *count = list->count;
  for (int64_t i = 0; i < *count; i++) {
    wlmi_timed *c = &(*candidates)[i];
    *c = (wlmi_timed){.seconds = 0};
    memcpy(c->variant, list->candidates[i].variant, sizeof c->variant);
    wlmi_known_find(tuner->known, known_key, wlmi_family_version(list->families, c->variant), c);
  }
done:
  wlmi_candidates_drop(list);
  return status;
}

wlm_status wlmi_tuner_left(wlmi_tuner *tuner, const char *matrix_name, const wlmi_spec *spec, int64_t *left,
                           int64_t *count) {
  char key[WLMI_SPEC_KEY];
  wlmi_timed *candidates;
  int64_t known = 0, works = 0, precise = 0;
  wlmi_spec_key(spec, key);
  wlm_status status =
      wlmi_tuner_candidates(tuner, spec, wlmi_known_named_key(matrix_name, key, spec->problem.n), &candidates, count);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < *count; i++) {
    known += candidates[i].is_known;
    works += candidates[i].is_known && isfinite(candidates[i].seconds);
    precise += candidates[i].samples >= WLMI_PRECISE_SAMPLES;
  }
  *left = known == *count && works && !precise ? 1 : *count - known;
  wlmi_free(candidates);
  return WLM_OK;
}

/* ---- cold caches -------------------------------------------------------------------------------------- */

const wlmi_buffer *wlmi_tuner_flush_buffer(wlmi_tuner *tuner) {
  wlmi_device *device = wlmi_context_device(tuner->context);
  const size_t size = 2 * (size_t)device->info.limits.l2_bytes;
  if (!tuner->flush_tried && size && device->ops->allocate(device, size, &tuner->flush.memory) == WLM_OK)
    tuner->flush.size = size;
  tuner->flush_tried = 1;
  wlmi_clear_error();
  return &tuner->flush;
}
