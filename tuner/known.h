/* The measurements that the store already has, so that they are not repeated. */
#pragma once

#include "db/store.h"
#include "tuner/timed.h"

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

/* Gives the candidate the time of its best measurement for the key in this version of its family, or an infinite one if
 * the newest failed. It is known if it was measured, and twice if that was noisy. known = NULL has no measurements. */
void wlmi_known_find(const wlmi_known *known, wlmi_hash known_key, const char *version, wlmi_timed *candidate);
