/* What the store has already, so that it need not be measured again. */
#ifndef WLM_TUNER_KNOWN_H
#define WLM_TUNER_KNOWN_H

#include "db/store.h"

typedef struct wlmi_known wlmi_known;

/* All measurements of a device class at once, except the stale ones, which another compiler or driver was there for;
 * what is stored later is not in it. */
wlm_status wlmi_known_load(wlm_store *store, const char *device_class, const char *compiler, const char *driver,
                           wlmi_known **known);
void wlmi_known_destroy(wlmi_known *known); /* NULL is fine */

/* One matrix, problem and width: the matrix by its fingerprint, or by its name where it has not been made. */
wlmi_hash wlmi_known_place(const uint64_t fingerprint[2], const char *problem, int64_t n);
wlmi_hash wlmi_known_named_place(const char *matrix_name, const char *problem, int64_t n);

/* Whether anything was measured there. NULL knows nothing. */
int wlmi_known_anything(const wlmi_known *known, wlmi_hash place);

typedef struct wlmi_known_time {
  double seconds; /* of the best measurement; infinite where the newest one failed */
  int samples;
  int prepared;
} wlmi_known_time;
/* 1 where the variant was measured there with this very source, and where its samples disagreed, twice. NULL knows
 * nothing. */
int wlmi_known_find(const wlmi_known *known, wlmi_hash place, const char *variant, const char *source_hash,
                    wlmi_known_time *time);

#endif
