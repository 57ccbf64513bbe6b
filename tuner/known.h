/* The measurements that the store already has, so that they are not repeated. */
#pragma once

#include "db/store.h"

typedef struct wlmi_known wlmi_known;

/* Loads all measurements of a device class except stale ones (made with another compiler or driver). Measurements that
 * are stored later are not included. */
wlm_status wlmi_known_load(wlm_store *store, const char *device_class, const char *compiler, const char *driver,
                           wlmi_known **known);
void wlmi_known_destroy(wlmi_known *known); /* NULL is fine */

/* The key of a matrix, problem and N. The matrix is given by its fingerprint, or by its name if it has not been made
 * yet. */
wlmi_hash wlmi_known_key(const uint64_t fingerprint[2], const char *problem, int64_t n);
wlmi_hash wlmi_known_named_key(const char *matrix_name, const char *problem, int64_t n);

typedef struct wlmi_known_time {
  double seconds; /* time of the best measurement; infinite if the newest one failed */
  int samples;
  int prepared;
} wlmi_known_time;
/* 1 if the variant was measured for the key in this version of its family, and twice if it was noisy. known = NULL has
 * no measurements. */
int wlmi_known_find(const wlmi_known *known, wlmi_hash known_key, const char *variant, const char *version,
                    wlmi_known_time *time);
