/* A sorted array of hashes: a tuning run looks up some thousand keys. */
#include "tuner/known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "db/measurement_set.h"

typedef struct entry {
  wlmi_hash key;
  double seconds;
  int samples, kind, noisy;
  int64_t made_at;
} entry;

struct wlmi_known {
  entry *entries;
  int64_t count;
};

static wlmi_hash hash_text(const char *text) { return wlmi_hash_text(text ? text : ""); }

static wlmi_hash place_of(wlmi_hash matrix, const char *problem, int64_t n) {
  const wlmi_hash parts[3] = {matrix, hash_text(problem), {(uint64_t)n, 0}};
  return wlmi_hash_bytes(parts, sizeof parts);
}

wlmi_hash wlmi_known_key(const uint64_t fingerprint[2], const char *problem, int64_t n) {
  return place_of((wlmi_hash){fingerprint[0], fingerprint[1]}, problem, n);
}

wlmi_hash wlmi_known_named_key(const char *matrix_name, const char *problem, int64_t n) {
  return place_of(hash_text(matrix_name), problem, n);
}

static wlmi_hash key_of(wlmi_hash known_key, const char *variant, const char *version) {
  const wlmi_hash parts[3] = {known_key, hash_text(variant), hash_text(version)};
  return wlmi_hash_bytes(parts, sizeof parts);
}

/* Of keys, which entries begin with. */
static int compare_keys(const void *left, const void *right) {
  const wlmi_hash *a = left, *b = right;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->low > b->low) - (a->low < b->low);
}

static int is_precise(const entry *e) { return e->samples >= WLMI_PRECISE_SAMPLES; }

/* For equal keys precise measurements come first, among these the ones that are not noisy, then those with most
 * samples, then the fastest. */
static int compare(const void *left, const void *right) {
  const entry *a = left, *b = right;
  const int order = compare_keys(a, b);
  if (order) return order;
  if (is_precise(a) != is_precise(b)) return is_precise(b) - is_precise(a);
  if (a->noisy != b->noisy) return a->noisy - b->noisy;
  if (a->samples != b->samples) return a->samples > b->samples ? -1 : 1;
  return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static void add(wlmi_known *known, const wlmi_measurement_record *record) {
  const wlmi_hash places[2] = {wlmi_known_key(record->stats.fingerprint, record->problem, record->n),
                               wlmi_known_named_key(record->matrix_name, record->problem, record->n)};
  for (int i = 0; i < 2; i++)
    known->entries[known->count++] = (entry){.key = key_of(places[i], record->variant, record->version),
                                             .seconds = record->failed ? INFINITY : (double)record->time_ps * 1e-12,
                                             .samples = record->failed ? 0 : record->samples,
                                             .kind = record->prepare_ps > 0 ? WLMI_PREPARED : WLMI_PLAIN,
                                             .noisy = wlmi_measurement_is_noisy(record),
                                             .made_at = record->made_at};
}

wlm_status wlmi_known_load(wlm_store *store, const char *device_class, const char *compiler, const char *driver,
                           wlmi_known **out) {
  wlmi_measurement_set set = {0};
  wlm_status status;
  wlmi_known *known = wlmi_alloc_zero(1, sizeof *known);
  *out = NULL;
  if (!known) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "what was measured before");
  WLM_TRY(wlmi_measurement_set_add(&set, store, device_class));
  WLM_TRY(
      wlmi_alloc_array(2 * set.count, sizeof *known->entries, "what was measured before", (void **)&known->entries));
  for (int64_t i = 0; i < set.count; i++) {
    const wlmi_measurement_record *record = &set.records[i];
    const int stale = strcmp(record->compiler, compiler) || strcmp(record->driver, driver);
    if (!stale && !wlmi_measurement_is_online(record) && !wlmi_measurement_is_passing(record)) add(known, record);
  }
  if (known->count) qsort(known->entries, (size_t)known->count, sizeof *known->entries, compare);
  *out = known;
  known = NULL;
done:
  wlmi_known_destroy(known);
  wlmi_measurement_set_release(&set);
  return status;
}

void wlmi_known_destroy(wlmi_known *known) {
  if (!known) return;
  wlmi_free(known->entries);
  wlmi_free(known);
}

/* The first of that key. */
static const entry *find(const wlmi_known *known, wlmi_hash key) {
  if (!known || !known->count) return NULL;
  const entry *e = bsearch(&key, known->entries, (size_t)known->count, sizeof *e, compare_keys);
  while (e && e > known->entries && !compare_keys(e - 1, &key)) e--;
  return e;
}

/* A noisy measurement counts if it was no better the second time, so tuning also ends on a busy machine. Each tuning
 * that measures a variant stores one screening run, and a precise measurement too if the variant was a finalist; the
 * second time it need not be one. */
void wlmi_known_find(const wlmi_known *known, wlmi_hash known_key, const char *version, wlmi_timed *candidate) {
  const wlmi_hash key = key_of(known_key, candidate->variant, version);
  const entry *best = find(known, key), *newest = best;
  int64_t precise = 0, screened = 0;
  if (!best) return;
  for (const entry *e = best; e < known->entries + known->count && !compare_keys(e, &key); e++) {
    const int failed = isinf(e->seconds);
    if (e->made_at > newest->made_at || (e->made_at == newest->made_at && failed)) newest = e;
    precise += !failed && is_precise(e);
    screened += !failed && !is_precise(e);
  }
  if (isinf(newest->seconds)) best = newest;
  candidate->seconds = best->seconds;
  candidate->samples = best->samples;
  candidate->kind = best->kind;
  candidate->is_known = !best->noisy || precise > 1 || screened > 1;
}
