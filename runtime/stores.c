/* What a context has besides its device: the generator, the kernel cache, kernel archives and the databases, of which
 * it loads a snapshot. Cases are derived from the measurements each time, so they never contradict them. They are
 * derived from the union of the user's database, the layers and the shipped database, so measurements of a matrix in
 * one never hide those in another. Pins and models of the user come before those of the layers, later layers before
 * earlier ones, and the shipped ones are last.
 *
 * Measurements of the most similar other device class are added last. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/process.h"
#include "db/measurement_set.h"
#include "db/store.h"
#include "exported/learn.h"
#include "runtime/context_state.h"
#include "runtime/devices.h"
#include "runtime/shipped.h"

/* ---- opening and closing ------------------------------------------------------------------------------- */

static const char *environment(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

/* The given path, or the default one; "" means none. If there is no default path, that is logged and counts as none. */
static wlm_status resolve_path(const char *given, wlm_status (*find_default)(wlmi_text *), const char *what,
                               char **path) {
  wlmi_text text = {0};
  if (given) {
    wlmi_text_puts(&text, given);
  } else if (find_default(&text) != WLM_OK && !text.failed) {
    wlmi_log(WLM_LOG_WARNING, "no %s: %s", what, wlm_error_detail());
    wlmi_text_release(&text);
  }
  return wlmi_text_take(&text, path);
}

static wlm_status default_system_database(wlmi_text *text) {
  wlmi_system_database_path(text);
  return WLM_OK;
}

/* A program with more rights than its caller uses no cache: the caller could own the files. */
static wlm_status open_cache(wlm_context *context, const char *path) {
  if (wlmi_process_is_privileged()) return WLM_OK;
  const wlm_status status = *path ? wlmi_kernel_cache_open(path, WLMI_KERNEL_CACHE_BYTES, &context->cache) : WLM_OK;
  if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) return status;
  wlmi_log(WLM_LOG_WARNING, "continuing without a kernel cache: %s", wlm_error_detail());
  return WLM_OK;
}

wlm_status wlmi_context_open_stores(wlm_context *context, const wlm_context_options *options) {
  char *cache_path = NULL;
  wlm_status status;
  WLM_TRY(wlmi_generator_create(options->templates ? options->templates : environment("WARPLOOM_TEMPLATES"),
                                &context->generator));
  WLM_TRY(resolve_path(options->database, wlmi_store_default_path, "user database", &context->database));
  WLM_TRY(
      resolve_path(options->system_database, default_system_database, "system database", &context->system_database));
  WLM_TRY(resolve_path(options->kernel_cache, wlmi_kernel_cache_default_path, "kernel cache", &cache_path));
  WLM_TRY(open_cache(context, cache_path));
  WLM_TRY(wlmi_layers_find(options->layers, options->layer_count, &context->layers, &context->archives));
  if (context->device->info.limits.target == WLMI_TARGET_CUDA)
    WLM_TRY(wlmi_archives_add_given(&context->archives, options->kernel_archive));
  else
    wlmi_archives_close(&context->archives); /* they have kernels of GPUs alone */
  /* An archive has few kernels, which then serve any number of columns. */
  context->device->info.limits.any_width = context->archives.count && !*context->device->info.compiler;
  context->recorder.wanted = options->record && *context->database;
  if (options->record && !*context->database)
    wlmi_log(WLM_LOG_WARNING, "nothing is recorded: the context has no user database");
done:
  wlmi_free(cache_path);
  return status;
}

void wlmi_context_close_stores(wlm_context *context) {
  if (wlmi_context_write_recorded(context) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "the recorded problems are lost: %s", wlm_error_detail());
  wlmi_context_release_recorder(context);
  wlmi_generator_destroy(context->generator);
  wlmi_kernel_cache_close(context->cache);
  wlmi_archives_close(&context->archives);
  wlmi_layers_release(&context->layers);
  wlmi_free(context->database);
  wlmi_free(context->system_database);
}

wlmi_generator *wlmi_context_generator(const wlm_context *context) { return context->generator; }

const char *wlmi_context_database_path(const wlm_context *context) { return context->database; }

/* ---- from databases to a snapshot ---------------------------------------------------------------------- */

typedef struct loading {
  const wlm_context *context;
  wlmi_snapshot *snapshot;
  /* The user's, the layers from the last to the first, and the shipped one. NULL = none, or left out. */
  wlm_store **stores;
  wlmi_text *nearest; /* the most similar other device class of each */
  int64_t count;
  int must_read; /* a database that cannot be read now, for example because it is locked, is an error */
} loading;

/* NULL for the databases of the user and the shipped one. */
static const wlmi_layer *layer_at(const loading *l, int64_t i) {
  return i && i < l->count - 1 ? &l->context->layers.list[i - 1] : NULL;
}

/* A database that is damaged, or of another version, is logged and left out. So is one that cannot be read now, unless
 * must_read is set: then the caller keeps its old snapshot. With a layer each of these is an error. */
static wlm_status complain(const loading *l, int64_t i, wlm_status status) {
  if (status == WLM_ERR_OUT_OF_MEMORY || layer_at(l, i)) return status;
  if (l->must_read && status != WLM_ERR_DATABASE && status != WLM_ERR_DATABASE_VERSION) return status;
  wlmi_log(WLM_LOG_WARNING, "continuing without the measurements of a database: %s", wlm_error_detail());
  return WLM_OK;
}

/* Also closes the database, so that it is logged only once. */
static wlm_status leave_out(loading *l, int64_t i, wlm_status status) {
  wlmi_store_close(l->stores[i]);
  l->stores[i] = NULL;
  return complain(l, i, status);
}

static wlm_status add_pins(const loading *l, wlm_store *store, const char *device_class) {
  wlmi_pin_record *pins = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_pins(store, device_class, &pins, &count);
  if (status == WLM_OK) status = wlmi_learned_add_pins(l->snapshot, pins, count);
  wlmi_pins_free(pins, count);
  return status;
}

/* Adds the models of one database. A damaged one is left out; the measurements stay. A model is stale if the newest
 * measurement of its database, which was added to the set last, is. */
static wlm_status add_models(const loading *l, wlm_store *store, const char *device_class, int borrowed,
                             const wlmi_measurement_set *set) {
  wlmi_model_record *records = NULL;
  wlmi_text stale = {0};
  const wlmi_measurement_record *newest = NULL;
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(wlmi_store_load_models(store, device_class, &records, &count));
  for (int64_t i = set->store_count > 1 ? set->ends[set->store_count - 2] : 0; i < set->count; i++)
    if (!newest || set->records[i].made_at > newest->made_at) newest = &set->records[i];
  if (newest) wlmi_snapshot_stale(l->snapshot, newest->compiler, newest->driver, &stale);
  for (int64_t i = 0; i < count; i++)
    WLM_TRY(wlmi_learned_add_model(l->snapshot, &records[i], borrowed ? device_class : NULL,
                                   stale.size ? stale.data : NULL));
done:
  wlmi_text_release(&stale);
  wlmi_model_records_free(records, count);
  return status;
}

/* Adds one device class from all databases. Pins are used on their own device class only. */
static wlm_status add_class(loading *l, const char *device_class, int borrowed) {
  wlmi_measurement_set set = {0};
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < l->count; i++) {
    if (!l->stores[i]) continue;
    if (!borrowed) status = add_pins(l, l->stores[i], device_class);
    if (status != WLM_OK) WLM_TRY(complain(l, i, status)); /* only the pins are left out */
    status = wlmi_measurement_set_add(&set, l->stores[i], device_class);
    if (status == WLM_OK) status = add_models(l, l->stores[i], device_class, borrowed, &set);
    if (status != WLM_OK) WLM_TRY(leave_out(l, i, status));
  }
  status =
      wlmi_snapshot_add_measurements(l->snapshot, set.records, set.count, borrowed ? device_class : NULL, NULL, NULL);
done:
  wlmi_measurement_set_release(&set);
  return status;
}

static wlm_status open_store(const loading *l, int64_t i, wlm_store **store) {
  const wlm_context *context = l->context;
  const wlmi_layer *layer = layer_at(l, i);
  const char *path = i ? context->system_database : context->database;
  if (layer) return layer->open(layer->path, store);
  if (!*path) return WLM_ERR_NOT_FOUND;
  return wlmi_store_open(path,
                         i              ? WLMI_STORE_READ_SHIPPED
                         : l->must_read ? WLMI_STORE_READ_PATIENT
                                        : WLMI_STORE_READ,
                         store);
}

static wlm_status open_all(loading *l) {
  const wlmi_device_record device = wlmi_device_record_of(l->context->device);
  for (int64_t i = 0; i < l->count; i++) {
    wlm_status status = open_store(l, i, &l->stores[i]);
    if (status == WLM_OK) status = wlmi_store_nearest_class(l->stores[i], &device, &l->nearest[i]);
    if (status == WLM_ERR_NOT_FOUND && !layer_at(l, i)) status = WLM_OK; /* nothing was tuned so far */
    if (status != WLM_OK) WLM_CHECK(leave_out(l, i, status));
  }
  return WLM_OK;
}

/* Adds the most similar other class of each database, each class once. */
static wlm_status add_nearest(loading *l) {
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < l->count && status == WLM_OK; i++) {
    const char *name = l->nearest[i].data;
    int is_new = name && *name;
    for (int64_t k = 0; k < i && is_new; k++) is_new = !l->nearest[k].data || strcmp(name, l->nearest[k].data);
    if (is_new) status = add_class(l, name, 1);
  }
  return status;
}

wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot) {
  loading l = {context, snapshot, NULL, NULL, context->layers.count + 2, must_read};
  wlm_status status;
  snapshot->families = wlmi_generator_families(context->generator);
  WLM_TRY(wlmi_snapshot_set_device(snapshot, context->device->info.compiler, context->device->info.driver));
  l.stores = wlmi_alloc_zero((size_t)l.count, sizeof *l.stores);
  l.nearest = wlmi_alloc_zero((size_t)l.count, sizeof *l.nearest);
  if (!l.stores || !l.nearest) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "databases"));
  WLM_TRY(open_all(&l));
  WLM_TRY(add_class(&l, context->device_class, 0));
  status = add_nearest(&l);
done:
  for (int64_t i = 0; l.stores && i < l.count; i++) wlmi_store_close(l.stores[i]);
  for (int64_t i = 0; l.nearest && i < l.count; i++) wlmi_text_release(&l.nearest[i]);
  wlmi_free(l.stores);
  wlmi_free(l.nearest);
  return status;
}
