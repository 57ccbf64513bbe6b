/* What was learned on a device of this class: the user's database and the one shipped beside the library, into one
 * snapshot. Cases are derived from the measurements each time, so nothing in a database can be out of step with them.
 * They are derived from the union of both databases, as a merge of the two would: what one has of a matrix never hides
 * what the other has. The user's pins go before the system's.
 *
 * Behind all of that stands what the nearest other class of devices measured. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/memory.h"
#include "db/measurement_set.h"
#include "db/store.h"
#include "runtime/context_state.h"

void wlmi_context_device_record(const wlm_context *context, wlmi_device_record *record) {
  const wlmi_device_info *info = &context->device->info;
  *record = (wlmi_device_record){(char *)info->name, (char *)info->kind, (char *)info->arch, info->limits.processors,
                                 info->memory_bytes};
}

/* What this is linked into; NULL where that cannot be told. Of a command that was found by PATH dladdr knows the name
 * alone. */
static const char *own_file(char command[PATH_MAX]) {
  Dl_info here;
  if (!dladdr((void *)wlmi_system_database_path, &here) || !here.dli_fname) return NULL;
  if (strchr(here.dli_fname, '/')) return here.dli_fname;
  const ssize_t size = readlink("/proc/self/exe", command, PATH_MAX - 1);
  if (size <= 0) return NULL;
  command[size] = 0;
  return command;
}

/* From the folder of that: a build's own, or bin and lib below a prefix, or Debian's lib/TRIPLET. */
void wlmi_system_database_path(wlmi_text *path) {
  static const char *const places[] = {"", "/..", "/../.."};
  const size_t start = path->size;
  char command[PATH_MAX];
  const char *file = own_file(command), *slash = file ? strrchr(file, '/') : NULL;
  if (!slash) return;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    wlmi_text_append(path, file, (size_t)(slash - file));
    wlmi_text_printf(path, "%s/share/warploom/system.db", places[i]);
    if (path->failed || !access(path->data + start, R_OK)) return;
    path->data[path->size = start] = 0;
  }
}

/* ---- from databases to a snapshot ---------------------------------------------------------------------- */

enum { DATABASES = 2 }; /* the user's and the system's */

typedef struct loading {
  wlmi_snapshot *snapshot;
  wlm_store *stores[DATABASES]; /* NULL = none, or left out */
  int must_read;                /* a database that another process has locked, for one, is an error */
} loading;

/* What one database cannot give costs no other and no call: what is damaged, or of another version, is left out. So is
 * what cannot be read for now, unless the caller has something better to go on with. */
static wlm_status complain(const loading *l, wlm_status status) {
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (l->must_read && status != WLM_ERR_DATABASE && status != WLM_ERR_DATABASE_VERSION) return status;
  wlmi_log(WLM_LOG_WARNING, "going on without what was learned: %s", wlm_error_detail());
  return WLM_OK;
}

/* After that it is closed, so that it is complained about once. */
static wlm_status leave_out(loading *l, int database, wlm_status status) {
  wlmi_store_close(l->stores[database]);
  l->stores[database] = NULL;
  return complain(l, status);
}

static wlm_status add_pins(const loading *l, wlm_store *store, const char *device_class) {
  wlmi_pin_record *pins = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_pins(store, device_class, &pins, &count);
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    wlmi_pin pin = {.problem = pins[i].problem, .n = pins[i].n, .variant = pins[i].variant};
    wlmi_hash fingerprint;
    pin.exact = wlmi_hash_from_hex(pins[i].place, &fingerprint);
    if (pin.exact) memcpy(pin.fingerprint, (uint64_t[]){fingerprint.high, fingerprint.low}, sizeof pin.fingerprint);
    if (pin.exact || wlmi_bucket_parse(pins[i].place, &pin.bucket)) status = wlmi_snapshot_add_pin(l->snapshot, &pin);
  }
  wlmi_pins_free(pins, count);
  return status;
}

static wlm_status add_model(const loading *l, const wlmi_model_record *record, const char *borrowed,
                            const char *stale) {
  wlmi_model model;
  wlm_status status = wlmi_model_read(record->data, record->size, &model);
  if (status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION) {
    wlmi_log(WLM_LOG_WARNING, "going on without the model for %s: %s", record->name, wlm_error_detail());
    return WLM_OK;
  }
  if (status == WLM_OK) status = wlmi_snapshot_add_model(l->snapshot, &model, borrowed, stale);
  wlmi_model_release(&model);
  return status;
}

/* A model that is damaged costs a step of choosing, never the measurements. It is as old as the newest measurement
 * beside it, which are those from `set->before` on. */
static wlm_status add_models(const loading *l, wlm_store *store, const char *device_class, int borrowed,
                             const wlmi_measurement_set *set) {
  wlmi_model_record *records = NULL;
  wlmi_text stale = {0};
  const wlmi_measurement_record *newest = NULL;
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(wlmi_store_load_models(store, device_class, &records, &count));
  for (int64_t i = set->before; i < set->count; i++)
    if (!newest || set->records[i].made_at > newest->made_at) newest = &set->records[i];
  if (newest) wlmi_snapshot_stale(l->snapshot, newest->compiler, newest->driver, &stale);
  for (int64_t i = 0; i < count; i++)
    WLM_TRY(add_model(l, &records[i], borrowed ? device_class : NULL, stale.size ? stale.data : NULL));
done:
  wlmi_text_release(&stale);
  wlmi_model_records_free(records, count);
  return status;
}

/* One class of devices from all databases. Pins are for the class they were made on and are never borrowed. */
static wlm_status add_class(loading *l, const char *device_class, int borrowed) {
  wlmi_measurement_set set = {0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < DATABASES; i++) {
    if (!l->stores[i]) continue;
    if (!borrowed) status = add_pins(l, l->stores[i], device_class);
    if (status != WLM_OK) WLM_TRY(complain(l, status)); /* which costs the pins, not the rest */
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

/* What this device's own class measured, then what the nearest one did: a database may have another one as nearest than
 * the other has. */
wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot) {
  const char *const paths[DATABASES] = {context->database, context->system_database};
  loading l = {snapshot, {NULL}, must_read};
  wlmi_text nearest[DATABASES] = {{0}};
  wlmi_device_record device;
  wlm_status status;
  snapshot->families = wlmi_generator_families(context->generator);
  WLM_TRY(wlmi_snapshot_set_device(snapshot, context->device->info.compiler, context->device->info.driver));
  wlmi_context_device_record(context, &device);
  for (int i = 0; i < DATABASES; i++) {
    if (!*paths[i]) continue;
    status = wlmi_store_open(paths[i], i ? WLM_STORE_READ_SHIPPED : WLM_STORE_READ, &l.stores[i]);
    if (status == WLM_OK) status = wlmi_store_nearest_class(l.stores[i], &device, &nearest[i]);
    if (status == WLM_ERR_NOT_FOUND) status = WLM_OK; /* nothing was tuned so far */
    if (status != WLM_OK) WLM_TRY(leave_out(&l, i, status));
  }
  WLM_TRY(add_class(&l, context->device_class, 0));
  for (int i = 0; i < DATABASES; i++) {
    const char *name = nearest[i].data;
    if (nearest[i].failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device"));
    if (name && *name && (!i || !nearest[0].data || strcmp(name, nearest[0].data))) WLM_TRY(add_class(&l, name, 1));
  }
done:
  for (int i = 0; i < DATABASES; i++) wlmi_store_close(l.stores[i]);
  for (int i = 0; i < DATABASES; i++) wlmi_text_release(&nearest[i]);
  return status;
}
