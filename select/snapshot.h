/* A snapshot: the cases, models and pins of a device in plain arrays, immutable once filled. A context fills one from
 * its databases; tests and benches fill theirs from measurements in memory. */
#pragma once

#include <stdatomic.h>

#include "core/base/strings.h"
#include "core/problem/bucket.h"
#include "select/case.h"
#include "select/model.h"

/* A variant that a user pinned, for one matrix (exact) or a bucket of matrices. */
typedef struct wlmi_pin {
  int exact;
  uint64_t fingerprint[2]; /* if exact */
  wlmi_bucket bucket;      /* otherwise */
  const char *problem;     /* wlmi_spec_key */
  int64_t n;
  wlmi_variant value; /* filled by wlmi_snapshot_add_pin */
  const char *variant;
} wlmi_pin;

typedef struct wlmi_snapshot {
  wlmi_case *cases; /* those of the device's own class come first */
  wlmi_pin *pins;   /* the first that applies counts; exact ones come before buckets */
  wlmi_model *models;
  int64_t case_count, pin_count, model_count;
  int64_t case_capacity, pin_capacity, model_capacity;
  const wlmi_families *families; /* converts names to variants; set before anything is added. NULL = every name is
                                  * unknown */
  /* The device's present compiler and driver: measurements with others are stale. NULL = not known, and nothing is
   * stale. */
  const char *compiler, *driver;
  uint64_t generation; /* greater in newer snapshots of a context */
  atomic_int references;
  wlmi_strings strings, variants; /* the texts of all that is above; the names of variants */
  wlmi_variant *values;           /* of each of `variants` */
  int64_t value_capacity;
} wlmi_snapshot;

/* ---- filling: all arguments are copied ---- */

wlm_status wlmi_snapshot_set_device(wlmi_snapshot *snapshot, const char *compiler, const char *driver);
wlm_status wlmi_snapshot_add_case(wlmi_snapshot *snapshot, const wlmi_case *new_case);
/* Adds the cases of all measurements that `keep` accepts (NULL = all). The measurements are of one device class;
 * `borrowed` names it if it is not the device's own. Tests and benches leave matrices out by `keep`. */
typedef int (*wlmi_keep_fn)(void *user, const wlmi_measurement_record *record);
wlm_status wlmi_snapshot_add_measurements(wlmi_snapshot *snapshot, const wlmi_measurement_record *records,
                                          int64_t count, const char *borrowed, wlmi_keep_fn keep, void *user);
wlm_status wlmi_snapshot_add_pin(wlmi_snapshot *snapshot, const wlmi_pin *new_pin);
/* Takes ownership of the model's memory and empties `model`. `stale` as in wlmi_model; both texts may be NULL. */
wlm_status wlmi_snapshot_add_model(wlmi_snapshot *snapshot, wlmi_model *model, const char *borrowed, const char *stale);
void wlmi_snapshot_clear(wlmi_snapshot *snapshot); /* frees what is in it, also of a zeroed one */

/* ---- reading ---- */

/* Appends the compiler and the driver of a measurement if they differ from the device's. Appends nothing if they are
 * equal or not known. */
void wlmi_snapshot_stale(const wlmi_snapshot *snapshot, const char *compiler, const char *driver, wlmi_text *stale);
int wlmi_snapshot_is_stale(const wlmi_snapshot *snapshot, const char *compiler, const char *driver);

/* ---- sharing: a snapshot on the heap with a count of its users, from any thread ---- */

wlm_status wlmi_snapshot_create(wlmi_snapshot **snapshot); /* empty, with one user */
wlmi_snapshot *wlmi_snapshot_retain(wlmi_snapshot *snapshot);
void wlmi_snapshot_release(wlmi_snapshot *snapshot); /* NULL is fine */
