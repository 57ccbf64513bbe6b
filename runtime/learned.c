/* What was learned on a device of this class: the user's database and the one shipped beside the library, into one
 * snapshot. Choices are derived from the measurements each time, so there is nothing in a database that could be out of
 * step with them; and they are derived once, from the union of both databases, as a merge of the two would: what one
 * knows of a matrix never hides what the other does. The user's pins go before the system's.
 *
 * Behind all of that stands what the nearest other class of devices measured. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "db/choice.h"
#include "db/model_record.h"
#include "db/nearest.h"
#include "db/pin.h"
#include "runtime/context_state.h"
#include "runtime/learned_union.h"

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

/* One device class on its way into a snapshot. */
typedef struct learning {
  const wlmi_device_info *info;
  wlmi_snapshot *snapshot;
  const char *device_class;
  int borrowed; /* the class is not this device's own */
} learning;

/* The first clock of validity: measurements outlive the compiler and the driver that they were made with, but that is
 * told. (The second is the kernel cache's, whose keys hold the compiler.) *stale stays empty where they are today's. */
static wlm_status tell_stale(const learning *l, const char *compiler, const char *driver, wlmi_text *stale) {
  const wlmi_device_info *info = l->info;
  compiler = compiler ? compiler : "";
  driver = driver ? driver : "";
  if ((!*info->compiler || !strcmp(compiler, info->compiler)) && !strcmp(driver, info->driver)) return WLM_OK;
  wlmi_text_printf(stale, "%s%s%s", compiler, *driver ? ", driver " : "", driver);
  return stale->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "snapshot") : WLM_OK;
}

static wlm_status mark_stale(const learning *l, const wlmi_choice_candidate *candidate) {
  wlmi_text stale = {0};
  wlm_status status = tell_stale(l, candidate->compiler, candidate->driver, &stale);
  if (status == WLM_OK && stale.size) status = wlmi_snapshot_mark_stale(l->snapshot, stale.data);
  wlmi_text_release(&stale);
  return status;
}

static wlm_status add_case(const learning *l, const wlmi_choice *choice) {
  wlmi_case c = {.exact = choice->stats != NULL, .bucket = choice->bucket, .problem = choice->problem, .n = choice->n};
  if (choice->stats) memcpy(c.fingerprint, choice->stats->fingerprint, sizeof c.fingerprint);
  if (choice->stats) {
    c.matrix = choice->matrix;
    c.rows = choice->stats->rows;
    c.nnz = choice->stats->nnz;
    c.place = wlmi_place_of(choice->stats, choice->n);
  }
  c.matrices = choice->matrices;
  if (l->borrowed) c.borrowed = l->device_class;
  const double unit = choice->stats ? 1e-12 : 1; /* picoseconds to seconds; relative times have none */
  wlm_status status = wlmi_snapshot_add_case(l->snapshot, &c);
  for (int64_t i = 0; i < choice->count && status == WLM_OK; i++) {
    const wlmi_choice_candidate *candidate = &choice->candidates[i];
    status =
        wlmi_snapshot_add_ranked(l->snapshot, candidate->variant, candidate->cost * unit, candidate->prepare * unit);
    if (status == WLM_OK)
      wlmi_snapshot_mark_measured(l->snapshot, candidate->spread / candidate->cost, candidate->online);
    if (status == WLM_OK && choice->stats) status = mark_stale(l, candidate);
  }
  const wlmi_choice_candidate *failed = choice->candidates + choice->count;
  for (int64_t i = 0; choice->stats && i < choice->failed && status == WLM_OK; i++)
    status = wlmi_snapshot_add_failure(l->snapshot, failed[i].variant, failed[i].reason ? failed[i].reason : "");
  return status;
}

static wlm_status add_choices(const learning *l, const wlmi_learned_union *all) {
  wlmi_choices choices = {0};
  wlm_status status;
  WLM_TRY(wlmi_choices_make(all->records, all->count, &choices));
  for (int64_t i = 0; i < choices.matrix_count; i++)
    WLM_TRY(add_case(l, &choices.matrices[i])); /* also one of which it is only known what fails */
  for (int64_t i = 0; i < choices.bucket_count; i++)
    if (choices.buckets[i].count) WLM_TRY(add_case(l, &choices.buckets[i]));
done:
  wlmi_choices_release(&choices);
  return status;
}

static wlm_status add_pins(const learning *l, wlm_store *store) {
  wlmi_pin_record *pins = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_pins(store, l->device_class, &pins, &count);
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

/* What a model learned from is as old as the newest measurement beside it. */
static wlm_status mark_stale_model(const learning *l, const wlmi_measurement_record *records, int64_t count) {
  wlmi_text stale = {0};
  const wlmi_measurement_record *newest = count ? records : NULL;
  wlm_status status = WLM_OK;
  for (int64_t i = 1; i < count; i++)
    if (records[i].made_at > newest->made_at) newest = &records[i];
  if (newest) status = tell_stale(l, newest->compiler, newest->driver, &stale);
  if (status == WLM_OK && stale.size) status = wlmi_snapshot_mark_stale_model(l->snapshot, stale.data);
  wlmi_text_release(&stale);
  return status;
}

/* A model that cannot be read costs a step of choosing, never the measurements. `own` are those of its database. */
static wlm_status add_models(const learning *l, wlm_store *store, const wlmi_measurement_record *own,
                             int64_t own_count) {
  wlmi_model_record *records = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_models(store, l->device_class, &records, &count);
  for (int64_t i = 0; i < count && status == WLM_OK; i++) {
    wlmi_model model;
    status = wlmi_model_read(records[i].data, records[i].size, &model);
    if (status == WLM_ERR_DATABASE || status == WLM_ERR_DATABASE_VERSION) {
      wlmi_log(WLM_LOG_WARNING, "going on without the model for %s: %s", records[i].name, wlm_error_detail());
      status = WLM_OK;
      continue;
    }
    if (status == WLM_OK) status = wlmi_snapshot_add_model(l->snapshot, &model, l->borrowed ? l->device_class : NULL);
    if (status == WLM_OK) status = mark_stale_model(l, own, own_count);
    wlmi_model_release(&model);
  }
  wlmi_model_records_free(records, count);
  return status;
}

static void warn(void) { wlmi_log(WLM_LOG_WARNING, "going on without what was learned: %s", wlm_error_detail()); }

enum { DATABASES = 2 };

/* One class of devices from all databases. What one of them cannot give costs no other; then it is closed, so that it
 * is complained about once. Pins are for the class they were made on and are never borrowed. */
static void add_class(const learning *l, wlm_store *stores[DATABASES]) {
  wlmi_learned_union all = {0};
  for (int i = 0; i < DATABASES; i++) {
    if (!stores[i]) continue;
    if (!l->borrowed && add_pins(l, stores[i]) != WLM_OK) warn(); /* which costs the pins, not the rest */
    const int64_t before = all.count;
    wlm_status status = wlmi_learned_union_add(&all, stores[i], l->device_class);
    const wlm_status models = add_models(l, stores[i], all.records + before, all.count - before);
    if (status == WLM_OK) status = models;
    if (status == WLM_OK) continue;
    warn();
    wlmi_store_close(stores[i]);
    stores[i] = NULL;
  }
  if (add_choices(l, &all) != WLM_OK) warn();
  wlmi_learned_union_release(&all);
}

/* What this device's own class measured, then what the nearest one did: a database may know another one as nearest than
 * the other does. */
void wlmi_context_load_learned(const wlm_context *context, wlmi_snapshot *snapshot) {
  const char *const paths[DATABASES] = {context->database, context->system_database};
  wlm_store *stores[DATABASES] = {NULL};
  wlmi_text classes[1 + DATABASES] = {{0}};
  wlmi_device_record device;
  wlmi_context_device_record(context, &device);
  wlmi_device_class(&device, &classes[0]);
  for (int i = 0; i < DATABASES; i++) {
    if (!*paths[i]) continue;
    wlm_status status = wlmi_store_open(paths[i], WLM_STORE_READ, &stores[i]);
    if (status == WLM_OK) status = wlmi_store_nearest_class(stores[i], &device, &classes[1 + i]);
    if (status != WLM_OK && status != WLM_ERR_NOT_FOUND) warn();
  }
  for (int i = 0; i < 1 + DATABASES; i++) {
    const char *name = classes[i].data;
    if (classes[i].failed || !name || !*name || (i == 2 && classes[1].data && !strcmp(name, classes[1].data))) continue;
    add_class(&(learning){&context->device->info, snapshot, name, i > 0}, stores);
  }
  for (int i = 0; i < DATABASES; i++) wlmi_store_close(stores[i]);
  for (int i = 0; i < 1 + DATABASES; i++) wlmi_text_release(&classes[i]);
}
