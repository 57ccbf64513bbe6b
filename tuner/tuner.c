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
  wlm_spec spec;
  wlm_names names;
  char (*source_hashes)[WLM_HASH_HEX]; /* NULL until they are needed; "" where it cannot be emitted */
} catalogue;

struct wlm_tuner {
  wlm_context *context;
  wlm_store *store;
  wlm_known *known; /* NULL where all is measured again */
  catalogue *catalogues;
  wlm_buffer flush;
  int flush_tried;
};

static wlm_status load_known(wlm_tuner *tuner) {
  const wlm_device_info *info = &wlm_context_device(tuner->context)->info;
  wlm_device_record device;
  wlm_text class = {0};
  wlm_context_device_record(tuner->context, &device);
  wlm_device_class(&device, &class);
  wlm_status status = class.failed
                          ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "the device's class")
                          : wlm_known_load(tuner->store, class.data, info->compiler, info->driver, &tuner->known);
  wlm_text_release(&class);
  return status;
}

wlm_status wlm_tuner_create(wlm_context *context, int again, wlm_tuner **out) {
  const wlm_device_info *info = &wlm_context_device(context)->info;
  const char *path = wlm_context_database_path(context);
  wlm_status status;
  *out = NULL;
  if (!*info->compiler)
    return wlm_fail(WLM_ERR_NO_COMPILER, "tuning compiles kernels, and there is no compiler for the device %s",
                    info->name);
  if (!*path)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "tuning stores what it measures, and the context has no user database");
  wlm_tuner *tuner = wlm_alloc_zero(1, sizeof *tuner);
  if (!tuner) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a tuner");
  tuner->context = context;
  WLM_TRY(wlm_store_open(path, WLM_STORE_WRITE, &tuner->store));
  if (!again) WLM_TRY(load_known(tuner));
  *out = tuner;
  tuner = NULL;
done:
  wlm_tuner_destroy(tuner);
  return status;
}

wlm_status wlm_tuner_reread(wlm_tuner *tuner) {
  wlm_known *before = tuner->known;
  if (!before) return WLM_OK; /* all is measured again */
  tuner->known = NULL;
  const wlm_status status = load_known(tuner);
  if (status == WLM_OK)
    wlm_known_destroy(before);
  else
    tuner->known = before;
  return status;
}

static void release_catalogue(catalogue *c) {
  wlm_names_release(&c->names);
  wlm_free(c->source_hashes);
  wlm_free(c);
}

void wlm_tuner_destroy(wlm_tuner *tuner) {
  if (!tuner) return;
  for (catalogue *c = tuner->catalogues, *next; c; c = next) {
    next = c->next;
    release_catalogue(c);
  }
  wlm_device *device = wlm_context_device(tuner->context);
  device->ops->release(device, tuner->flush.memory);
  wlm_known_destroy(tuner->known);
  wlm_store_close(tuner->store);
  wlm_free(tuner);
}

wlm_store *wlm_tuner_store(const wlm_tuner *tuner) { return tuner->store; }
wlm_context *wlm_tuner_context(const wlm_tuner *tuner) { return tuner->context; }

/* ---- candidates --------------------------------------------------------------------------------------- */

/* Whether nothing differs that makes another source or another list; an activation's text may be gone by now. */
static int same_spec(const wlm_spec *a, const wlm_spec *b) {
  const wlm_problem *p = &a->problem, *q = &b->problem;
  char keys[2][WLM_SPEC_KEY];
  wlm_spec_key(a, keys[0]);
  wlm_spec_key(b, keys[1]);
  return !strcmp(keys[0], keys[1]) && p->n == q->n && p->deterministic == q->deterministic && !p->bias == !q->bias &&
         !p->activation && !q->activation && p->ldb == q->ldb && p->ldc == q->ldc && p->alpha == q->alpha &&
         p->beta == q->beta;
}

/* One that cannot be emitted is told when it is compiled. */
static void hash_source(const wlm_tuner *tuner, const wlm_spec *spec, const char *variant, char hash[WLM_HASH_HEX]) {
  wlm_program program = {0};
  if (wlm_generator_emit(wlm_context_generator(tuner->context), variant, spec,
                         &wlm_context_device(tuner->context)->info.limits, &program) == WLM_OK)
    wlm_hash_to_hex(wlm_hash_bytes(program.source, strlen(program.source)), hash);
  wlm_program_release(&program);
}

static wlm_status find_catalogue(wlm_tuner *tuner, const wlm_spec *spec, catalogue **out) {
  wlm_status status;
  for (catalogue *c = tuner->catalogues; c; c = c->next)
    if (same_spec(&c->spec, spec)) return *out = c, WLM_OK;
  const wlm_device_info *info = &wlm_context_device(tuner->context)->info;
  catalogue *c = wlm_alloc_zero(1, sizeof *c);
  if (!c) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  c->spec = *spec;
  WLM_TRY(wlm_generator_candidates(wlm_context_generator(tuner->context), spec, &info->limits, &c->names));
  if (!c->names.count)
    WLM_TRY(wlm_fail(WLM_ERR_UNSUPPORTED, "no family has a kernel for this problem on the device %s", info->name));
  c->next = tuner->catalogues;
  *out = tuner->catalogues = c;
  c = NULL;
done:
  if (c) release_catalogue(c);
  return status;
}

/* spec: the caller's, whose texts are alive; those of the catalogue may be gone. */
static wlm_status hash_sources(const wlm_tuner *tuner, const wlm_spec *spec, catalogue *c) {
  if (c->source_hashes) return WLM_OK;
  c->source_hashes = wlm_alloc_zero((size_t)c->names.count, sizeof *c->source_hashes);
  if (!c->source_hashes) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  for (int64_t i = 0; i < c->names.count; i++) hash_source(tuner, spec, c->names.names[i], c->source_hashes[i]);
  wlm_clear_error();
  return WLM_OK;
}

wlm_status wlm_tuner_candidates(wlm_tuner *tuner, const wlm_spec *spec, wlm_hash place,
                                wlm_tuner_candidate **candidates, int64_t *count) {
  catalogue *c = NULL;
  wlm_status status = find_catalogue(tuner, spec, &c);
  const int anything = wlm_known_anything(tuner->known, place);
  if (status == WLM_OK && anything) status = hash_sources(tuner, spec, c);
  if (status == WLM_OK)
    status = wlm_alloc_array(c->names.count, sizeof **candidates, "candidates", (void **)candidates);
  if (status != WLM_OK) return status;
  *count = c->names.count;
  for (int64_t i = 0; i < *count; i++) {
    wlm_known_time time = {0};
    const int known = anything && wlm_known_find(tuner->known, place, c->names.names[i], c->source_hashes[i], &time);
    (*candidates)[i] = (wlm_tuner_candidate){c->names.names[i], known, time.prepared, time.seconds, time.samples};
  }
  return WLM_OK;
}

void wlm_tuner_source_hash(const wlm_tuner *tuner, const wlm_spec *spec, const char *variant, char hash[WLM_HASH_HEX]) {
  *hash = 0;
  hash_source(tuner, spec, variant, hash);
}

wlm_status wlm_tuner_left(wlm_tuner *tuner, const char *matrix_name, const wlm_spec *spec, int64_t *left,
                          int64_t *count) {
  char key[WLM_SPEC_KEY];
  wlm_tuner_candidate *candidates;
  int64_t known = 0, works = 0, precise = 0;
  wlm_spec_key(spec, key);
  wlm_status status =
      wlm_tuner_candidates(tuner, spec, wlm_known_named_place(matrix_name, key, spec->problem.n), &candidates, count);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < *count; i++) {
    known += candidates[i].known;
    works += candidates[i].known && isfinite(candidates[i].seconds);
    precise += candidates[i].samples >= WLM_PRECISE_SAMPLES;
  }
  *left = known == *count && works && !precise ? 1 : *count - known;
  wlm_free(candidates);
  return WLM_OK;
}

/* ---- cold caches -------------------------------------------------------------------------------------- */

const wlm_buffer *wlm_tuner_flush_buffer(wlm_tuner *tuner) {
  wlm_device *device = wlm_context_device(tuner->context);
  const size_t size = 2 * (size_t)device->info.l2_bytes;
  if (!tuner->flush_tried && size && device->ops->timer_sample_cold &&
      device->ops->allocate(device, size, &tuner->flush.memory) == WLM_OK)
    tuner->flush.size = size;
  tuner->flush_tried = 1;
  wlm_clear_error();
  return &tuner->flush;
}
