/* What tunings have in common: the store, what it knew at the beginning, the candidates of each spec with the hash of
 * their source (emitted once a spec, since it does not depend on the matrix, and only if there is something to compare
 * it with), and the memory that empties caches. */
#include "tuner/tuner.h"

#include <math.h>
#include <string.h>

#include "common/memory.h"
#include "tuner/known.h"
#include "tuner/operands.h"

/* The candidates of one spec. */
typedef struct catalogue {
  struct catalogue *next;
  wlmi_spec spec;
  const wlmi_candidate_list *list;
  char (*source_hashes)[WLM_HASH_HEX]; /* NULL until they are needed; "" where it cannot be emitted */
} catalogue;

struct wlmi_tuner {
  wlm_context *context;
  wlm_store *store;
  wlmi_known *known; /* NULL where all is measured again */
  catalogue *catalogues;
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
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "tuning stores what it measures, and the context has no user database");
  wlmi_tuner *tuner = wlmi_alloc_zero(1, sizeof *tuner);
  if (!tuner) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a tuner");
  tuner->context = context;
  WLM_TRY(wlmi_store_open(path, WLM_STORE_WRITE, &tuner->store));
  if (!again) WLM_TRY(load_known(tuner));
  *out = tuner;
  tuner = NULL;
done:
  wlmi_tuner_destroy(tuner);
  return status;
}

wlm_status wlmi_tuner_reread(wlmi_tuner *tuner) {
  wlmi_known *before = tuner->known;
  if (!before) return WLM_OK; /* all is measured again */
  tuner->known = NULL;
  const wlm_status status = load_known(tuner);
  if (status == WLM_OK)
    wlmi_known_destroy(before);
  else
    tuner->known = before;
  return status;
}

static void release_catalogue(catalogue *c) {
  wlmi_candidates_drop(c->list);
  wlmi_free(c->source_hashes);
  wlmi_free(c);
}

void wlmi_tuner_destroy(wlmi_tuner *tuner) {
  if (!tuner) return;
  for (catalogue *c = tuner->catalogues, *next; c; c = next) {
    next = c->next;
    release_catalogue(c);
  }
  wlmi_device *device = wlmi_context_device(tuner->context);
  device->ops->release(device, tuner->flush.memory);
  wlmi_known_destroy(tuner->known);
  wlmi_store_close(tuner->store);
  wlmi_free(tuner);
}

wlm_store *wlmi_tuner_store(const wlmi_tuner *tuner) { return tuner->store; }
wlm_context *wlmi_tuner_context(const wlmi_tuner *tuner) { return tuner->context; }

/* ---- candidates --------------------------------------------------------------------------------------- */

/* Whether nothing differs that makes another source or another list; an activation's text may be gone by now. */
static int same_spec(const wlmi_spec *a, const wlmi_spec *b) {
  const wlm_problem *p = &a->problem, *q = &b->problem;
  char keys[2][WLM_SPEC_KEY];
  wlmi_spec_key(a, keys[0]);
  wlmi_spec_key(b, keys[1]);
  return !strcmp(keys[0], keys[1]) && p->n == q->n && p->policy.deterministic == q->policy.deterministic &&
         !p->epilogue.bias == !q->epilogue.bias && !p->epilogue.activation && !q->epilogue.activation;
}

/* One that cannot be emitted is told when it is compiled. */
static void hash_source(const wlmi_tuner *tuner, const wlmi_spec *spec, const char *variant, char hash[WLM_HASH_HEX]) {
  wlmi_program program = {0};
  if (wlmi_generator_emit(wlmi_context_generator(tuner->context), variant, spec,
                          &wlmi_context_device(tuner->context)->info.limits, &program) == WLM_OK)
    wlmi_hash_to_hex(wlmi_hash_bytes(program.source, strlen(program.source)), hash);
  wlmi_program_release(&program);
}

static wlm_status find_catalogue(wlmi_tuner *tuner, const wlmi_spec *spec, catalogue **out) {
  wlm_status status;
  for (catalogue *c = tuner->catalogues; c; c = c->next)
    if (same_spec(&c->spec, spec)) return *out = c, WLM_OK;
  const wlmi_device_info *info = &wlmi_context_device(tuner->context)->info;
  catalogue *c = wlmi_alloc_zero(1, sizeof *c);
  if (!c) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  c->spec = *spec;
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(tuner->context), spec, &info->limits, &c->list));
  if (!c->list->count)
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "no family has a kernel for this problem on the device %s", info->name));
  c->next = tuner->catalogues;
  *out = tuner->catalogues = c;
  c = NULL;
done:
  if (c) release_catalogue(c);
  return status;
}

/* spec: the caller's, whose texts are alive; those of the catalogue may be gone. */
static wlm_status hash_sources(const wlmi_tuner *tuner, const wlmi_spec *spec, catalogue *c) {
  if (c->source_hashes) return WLM_OK;
  c->source_hashes = wlmi_alloc_zero((size_t)c->list->count, sizeof *c->source_hashes);
  if (!c->source_hashes) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  for (int64_t i = 0; i < c->list->count; i++)
    hash_source(tuner, spec, c->list->candidates[i].variant, c->source_hashes[i]);
  wlmi_clear_error();
  return WLM_OK;
}

wlm_status wlmi_tuner_candidates(wlmi_tuner *tuner, const wlmi_spec *spec, wlmi_hash place,
                                 wlmi_tuner_candidate **candidates, int64_t *count) {
  catalogue *c = NULL;
  wlm_status status = find_catalogue(tuner, spec, &c);
  const int anything = wlmi_known_anything(tuner->known, place);
  if (status == WLM_OK && anything) status = hash_sources(tuner, spec, c);
  if (status == WLM_OK)
    status = wlmi_alloc_array(c->list->count, sizeof **candidates, "candidates", (void **)candidates);
  if (status != WLM_OK) return status;
  *count = c->list->count;
  for (int64_t i = 0; i < *count; i++) {
    wlmi_known_time time = {0};
    const int known =
        anything && wlmi_known_find(tuner->known, place, c->list->candidates[i].variant, c->source_hashes[i], &time);
    (*candidates)[i] =
        (wlmi_tuner_candidate){c->list->candidates[i].variant, known, time.prepared, time.seconds, time.samples};
  }
  return WLM_OK;
}

void wlmi_tuner_source_hash(const wlmi_tuner *tuner, const wlmi_spec *spec, const char *variant,
                            char hash[WLM_HASH_HEX]) {
  *hash = 0;
  hash_source(tuner, spec, variant, hash);
}

wlm_status wlmi_tuner_left(wlmi_tuner *tuner, const char *matrix_name, const wlmi_spec *spec, int64_t *left,
                           int64_t *count) {
  char key[WLM_SPEC_KEY];
  wlmi_tuner_candidate *candidates;
  int64_t known = 0, works = 0, precise = 0;
  wlmi_spec_key(spec, key);
  wlm_status status =
      wlmi_tuner_candidates(tuner, spec, wlmi_known_named_place(matrix_name, key, spec->problem.n), &candidates, count);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < *count; i++) {
    known += candidates[i].known;
    works += candidates[i].known && isfinite(candidates[i].seconds);
    precise += candidates[i].samples >= WLM_PRECISE_SAMPLES;
  }
  *left = known == *count && works && !precise ? 1 : *count - known;
  wlmi_free(candidates);
  return WLM_OK;
}

/* ---- cold caches -------------------------------------------------------------------------------------- */

const wlmi_buffer *wlmi_tuner_flush_buffer(wlmi_tuner *tuner) {
  wlmi_device *device = wlmi_context_device(tuner->context);
  const size_t size = 2 * (size_t)device->info.limits.l2_bytes;
  if (!tuner->flush_tried && size && device->ops->timer_sample_cold &&
      device->ops->allocate(device, size, &tuner->flush.memory) == WLM_OK)
    tuner->flush.size = size;
  tuner->flush_tried = 1;
  wlmi_clear_error();
  return &tuner->flush;
}
