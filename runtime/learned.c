/* Loads the user's database and the shipped one into one snapshot. Cases are derived from the measurements each time,
 * so they never contradict them. They are derived from the union of both databases, so measurements of a matrix in one
 * never hide those in the other. The user's pins come before the system's.
 *
 * Measurements of the most similar other device class are added last. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "db/measurement_set.h"
#include "db/store.h"
#include "runtime/context_state.h"

void wlmi_context_device_record(const wlm_context *context, wlmi_device_record *record) {
  const wlmi_device_info *info = &context->device->info;
  *record = (wlmi_device_record){(char *)info->name, (char *)info->kind, (char *)info->arch, info->limits.processors,
                                 info->memory_bytes};
}

/* The file that this library is linked into, or NULL if it is not known. For a command that was found by PATH, dladdr
 * gives only the name. */
static const char *own_file(char command[PATH_MAX]) {
  Dl_info here;
  if (!dladdr((void *)wlmi_system_database_path, &here) || !here.dli_fname) return NULL;
  if (strchr(here.dli_fname, '/')) return here.dli_fname;
  const ssize_t size = readlink("/proc/self/exe", command, PATH_MAX - 1);
  if (size <= 0) return NULL;
  command[size] = 0;
  return command;
}

/* Looks relative to that file's folder: a build folder, bin or lib below a prefix, or Debian's lib/TRIPLET. */
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
  int must_read;                /* a database that cannot be read now, for example because it is locked, is an error */
} loading;

/* A database that is damaged, or of another version, is logged and left out. So is one that cannot be read now, unless
 * must_read is set: then the caller keeps its old snapshot. */
static wlm_status complain(const loading *l, wlm_status status) {
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (l->must_read && status != WLM_ERR_DATABASE && status != WLM_ERR_DATABASE_VERSION) return status;
  wlmi_log(WLM_LOG_WARNING, "continuing without the measurements of a database: %s", wlm_error_detail());
  return WLM_OK;
}

/* Also closes the database, so that it is logged only once. */
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
    pin.exact = wlmi_hash_from_hex(pins[i].target, &fingerprint);
    if (pin.exact) memcpy(pin.fingerprint, (uint64_t[]){fingerprint.high, fingerprint.low}, sizeof pin.fingerprint);
    if (pin.exact || wlmi_bucket_parse(pins[i].target, &pin.bucket)) status = wlmi_snapshot_add_pin(l->snapshot, &pin);
  }
  wlmi_pins_free(pins, count);
  return status;
}

static wlm_status add_model(const loading *l, const wlmi_model_record *record, const char *borrowed,
                            const char *stale) {
  wlmi_model model;
  wlm_status status = wlmi_model_read(record->data, record->size, &model);
  if (status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION) {
    wlmi_log(WLM_LOG_WARNING, "continuing without the model for %s: %s", record->name, wlm_error_detail());
    return WLM_OK;
  }
  if (status == WLM_OK) status = wlmi_snapshot_add_model(l->snapshot, &model, borrowed, stale);
  wlmi_model_release(&model);
  return status;
}

/* Adds the models of one database. A damaged one is left out; the measurements stay. A model is stale if the newest
 * measurement of its database (those from `set->before` on) is. */
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

/* Adds one device class from all databases. Pins are used on their own device class only. */
static wlm_status add_class(loading *l, const char *device_class, int borrowed) {
  wlmi_measurement_set set = {0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < DATABASES; i++) {
    if (!l->stores[i]) continue;
    if (!borrowed) status = add_pins(l, l->stores[i], device_class);
    if (status != WLM_OK) WLM_TRY(complain(l, status)); /* only the pins are left out */
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

/* Adds the device's own class, then the most similar one of each database; the two may differ. */
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
    const wlmi_store_mode mode = i ? WLM_STORE_READ_SHIPPED : must_read ? WLM_STORE_READ_PATIENT : WLM_STORE_READ;
    status = wlmi_store_open(paths[i], mode, &l.stores[i]);
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
