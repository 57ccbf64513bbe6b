/* What was learned on a device of this class: the user's database first, then the one shipped beside the
 * library, into one snapshot. Choices are derived from the measurements each time, so there is nothing
 * in a database that could be out of step with them. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "db/choice.h"
#include "db/interchange.h"
#include "db/model_record.h"
#include "db/nearest.h"
#include "db/pin.h"
#include "runtime/context_state.h"

void wlm_context_device_record(const wlm_context *context, wlm_device_record *record) {
  const wlm_device_info *info = &context->device->info;
  *record = (wlm_device_record){(char *)info->name, (char *)info->kind, (char *)info->arch, info->limits.processors,
                                info->memory_bytes};
}

/* What this is linked into; NULL where that cannot be told. Of a command that was found by PATH dladdr knows the name
 * alone. */
static const char *own_file(char command[PATH_MAX]) {
  Dl_info here;
  if (!dladdr((void *)wlm_system_database_path, &here) || !here.dli_fname) return NULL;
  if (strchr(here.dli_fname, '/')) return here.dli_fname;
  const ssize_t size = readlink("/proc/self/exe", command, PATH_MAX - 1);
  if (size <= 0) return NULL;
  command[size] = 0;
  return command;
}

/* From the folder of that: a build's own, or bin and lib below a prefix, or Debian's lib/TRIPLET. */
void wlm_system_database_path(wlm_text *path) {
  static const char *const places[] = {"", "/..", "/../.."};
  const size_t start = path->size;
  char command[PATH_MAX];
  const char *file = own_file(command), *slash = file ? strrchr(file, '/') : NULL;
  if (!slash) return;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    wlm_text_append(path, file, (size_t)(slash - file));
    wlm_text_printf(path, "%s/share/warploom/system.db", places[i]);
    if (path->failed || !access(path->data + start, R_OK)) return;
    path->data[path->size = start] = 0;
  }
}

/* One database and one device class on their way into a snapshot. */
typedef struct learning {
  const wlm_device_info *info;
  wlm_snapshot *snapshot;
  const char *device_class;
  int borrowed; /* the class is not this device's own */
} learning;

/* The first clock of validity: measurements outlive the compiler and the driver that they were made with, but that is
 * told. (The second is the kernel cache's, whose keys hold the compiler.) */
static wlm_status mark_stale(const learning *l, const wlm_choice_candidate *candidate) {
  const wlm_device_info *info = l->info;
  const char *compiler = candidate->compiler ? candidate->compiler : "";
  const char *driver = candidate->driver ? candidate->driver : "";
  if (l->borrowed || ((!*info->compiler || !strcmp(compiler, info->compiler)) && !strcmp(driver, info->driver)))
    return WLM_OK;
  wlm_text stale = {0};
  wlm_text_printf(&stale, "%s%s%s", compiler, *driver ? ", driver " : "", driver);
  wlm_status status =
      stale.failed ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "snapshot") : wlm_snapshot_mark_stale(l->snapshot, stale.data);
  wlm_text_release(&stale);
  return status;
}

static wlm_status add_case(const learning *l, const wlm_choice *choice) {
  wlm_case c = {.exact = choice->stats != NULL, .bucket = choice->bucket, .problem = choice->problem, .n = choice->n};
  if (choice->stats) memcpy(c.fingerprint, choice->stats->fingerprint, sizeof c.fingerprint);
  if (choice->stats) {
    c.matrix = choice->matrix;
    c.rows = choice->stats->rows;
    c.nnz = choice->stats->nnz;
    c.place = wlm_place_of(choice->stats, choice->n);
  }
  c.matrices = choice->matrices;
  if (l->borrowed) c.borrowed = l->device_class;
  const double unit = choice->stats ? 1e-12 : 1; /* picoseconds to seconds; relative times have none */
  wlm_status status = wlm_snapshot_add_case(l->snapshot, &c);
  for (int64_t i = 0; i < choice->count && status == WLM_OK; i++) {
    const wlm_choice_candidate *candidate = &choice->candidates[i];
    status =
        wlm_snapshot_add_ranked(l->snapshot, candidate->variant, candidate->cost * unit, candidate->prepare * unit);
    if (status == WLM_OK && choice->stats) status = mark_stale(l, candidate);
  }
  return status;
}

static wlm_status add_choices(const learning *l, wlm_store *store) {
  wlm_measurement_record *records = NULL;
  wlm_choices choices = {0};
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(wlm_store_load(store, l->device_class, &records, &count));
  WLM_TRY(wlm_choices_make(records, count, &choices));
  for (int64_t i = 0; i < choices.matrix_count; i++)
    if (choices.matrices[i].count) WLM_TRY(add_case(l, &choices.matrices[i]));
  for (int64_t i = 0; i < choices.bucket_count; i++)
    if (choices.buckets[i].count) WLM_TRY(add_case(l, &choices.buckets[i]));
done:
  wlm_choices_release(&choices);
  wlm_measurements_free(records, count);
  return status;
}

static wlm_status add_pins(const learning *l, wlm_store *store) {
  wlm_pin_record *pins = NULL;
  int64_t count = 0;
  wlm_status status = wlm_store_load_pins(store, l->device_class, &pins, &count);
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    wlm_pin pin = {.problem = pins[i].problem, .n = pins[i].n, .variant = pins[i].variant};
    wlm_hash fingerprint;
    pin.exact = wlm_hash_from_hex(pins[i].place, &fingerprint);
    if (pin.exact) memcpy(pin.fingerprint, (uint64_t[]){fingerprint.high, fingerprint.low}, sizeof pin.fingerprint);
    if (pin.exact || wlm_bucket_parse(pins[i].place, &pin.bucket)) status = wlm_snapshot_add_pin(l->snapshot, &pin);
  }
  wlm_pins_free(pins, count);
  return status;
}

/* A model that cannot be read costs a step of choosing, never the measurements. */
static wlm_status add_models(const learning *l, wlm_store *store) {
  wlm_model_record *records = NULL;
  int64_t count = 0;
  wlm_status status = wlm_store_load_models(store, l->device_class, &records, &count);
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    wlm_model model;
    status = wlm_model_read(records[i].data, records[i].size, &model);
    if (status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION) {
      wlm_log(WLM_LOG_WARNING, "going on without the model for %s: %s", records[i].name, wlm_error_detail());
      status = WLM_OK;
      continue;
    }
    if (status == WLM_OK) status = wlm_snapshot_add_model(l->snapshot, &model, l->borrowed ? l->device_class : NULL);
    wlm_model_release(&model);
  }
  wlm_model_records_free(records, count);
  return status;
}

static void warn(void) { wlm_log(WLM_LOG_WARNING, "going on without what was learned: %s", wlm_error_detail()); }

/* Pins are for the class they were made on and are never borrowed. */
static wlm_status add_store(const char *path, const wlm_device_record *device, learning *l) {
  wlm_store *store = NULL;
  wlm_text device_class = {0};
  wlm_status status;
  WLM_TRY(wlm_store_open(path, WLM_STORE_READ, &store));
  if (l->borrowed)
    WLM_TRY(wlm_store_nearest_class(store, device, &device_class));
  else
    wlm_device_class(device, &device_class);
  if (device_class.failed) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "class of a device"));
  if (!*device_class.data) goto done;
  l->device_class = device_class.data;
  status = l->borrowed ? WLM_OK : add_pins(l, store);
  if (status != WLM_OK) warn(); /* which costs the pins, not the rest */
  WLM_TRY(add_models(l, store));
  status = add_choices(l, store);
done:
  wlm_text_release(&device_class);
  wlm_store_close(store);
  return status;
}

/* The first match wins: what this device measured itself, the user's before the shipped, then what the nearest class
 * of devices did. */
void wlm_context_load_learned(const wlm_context *context, wlm_snapshot *snapshot) {
  const char *const paths[] = {context->database, context->system_database};
  wlm_device_record device;
  wlm_context_device_record(context, &device);
  for (int i = 0; i < 4; i++) {
    learning l = {.info = &context->device->info, .snapshot = snapshot, .borrowed = i / 2};
    if (!*paths[i % 2]) continue;
    wlm_status status = add_store(paths[i % 2], &device, &l);
    if (status != WLM_OK && status != WLM_ERR_NOT_FOUND && !l.borrowed) warn(); /* once a database */
  }
}

/* ---- export and import of the user database ------------------------------------------------------ */

static wlm_status open_user(const wlm_context *context, wlm_store_mode mode, wlm_store **store) {
  if (!*context->database)
    return wlm_fail(WLM_ERR_NOT_FOUND, "this context has no user database; give wlm_context_options.database");
  return wlm_store_open(context->database, mode, store);
}

wlm_status wlm_export_string(wlm_context *context, char **text) {
  wlm_store *store = NULL;
  wlm_text out = {0};
  *text = NULL;
  wlm_status status = open_user(context, WLM_STORE_READ, &store);
  if (status == WLM_OK) status = wlm_store_export(store, &out);
  if (status == WLM_OK) status = wlm_text_take(&out, text);
  wlm_text_release(&out);
  wlm_store_close(store);
  return status;
}

wlm_status wlm_export_file(wlm_context *context, FILE *file) {
  wlm_store *store = NULL;
  wlm_status status = open_user(context, WLM_STORE_READ, &store);
  if (status == WLM_OK) status = wlm_store_export_file(store, file, "the given file");
  wlm_store_close(store);
  return status;
}

wlm_status wlm_export_path(wlm_context *context, const char *path) {
  wlm_store *store = NULL;
  wlm_status status = open_user(context, WLM_STORE_READ, &store);
  if (status == WLM_OK) status = wlm_store_export_path(store, path);
  wlm_store_close(store);
  return status;
}

/* The three imports differ in their source only; one of `path`, `file` and `text` is given. */
static wlm_status import_from(wlm_context *context, const char *path, FILE *file, const char *text) {
  wlm_store *store = NULL;
  wlm_status status = open_user(context, WLM_STORE_WRITE, &store);
  if (status == WLM_OK)
    status = path   ? wlm_store_import_path(store, path, NULL)
             : file ? wlm_store_import_file(store, file, "the given file", NULL)
                    : wlm_store_import_string(store, text, "the given text", NULL);
  wlm_store_close(store);
  return status == WLM_OK ? wlm_context_refresh(context) : status;
}

wlm_status wlm_import_path(wlm_context *context, const char *path) { return import_from(context, path, NULL, NULL); }

wlm_status wlm_import_file(wlm_context *context, FILE *file) { return import_from(context, NULL, file, NULL); }

wlm_status wlm_import_string(wlm_context *context, const char *text) { return import_from(context, NULL, NULL, text); }
