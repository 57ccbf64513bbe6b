/* Pins: a variant that a person decided on for one problem and N, on one matrix or in one bucket of them. They are
 * opinions, not measurements: two stores may hold different ones, and then the one that is there stays. */
#ifndef WLM_DB_PIN_H
#define WLM_DB_PIN_H

#include "db/store.h"

typedef struct wlmi_pin_record {
  char *device_class;
  char *place; /* a bucket as wlmi_bucket_print writes it, or a fingerprint as 32 hexadecimal digits */
  char *problem;
  int64_t n;
  char *variant;
} wlmi_pin_record;

/* WLM_ERR_INVALID_ARGUMENT naming what can't be. */
wlm_status wlmi_pin_check(const wlmi_pin_record *pin);
/* {"pin":PLACE,"class":...,"problem":...,"n":32,"variant":...} without a line end. */
void wlmi_pin_json(const wlmi_pin_record *pin, wlmi_text *out);
/* By class, place, problem and n; 0 where they are for the same. */
int wlmi_pin_compare(const wlmi_pin_record *a, const wlmi_pin_record *b);
wlm_status wlmi_pin_copy(const wlmi_pin_record *pin, wlmi_pin_record *copy); /* owns its strings */
void wlmi_pins_free(wlmi_pin_record *pins, int64_t count);

/* Replaces a pin for the same. */
wlm_status wlmi_store_pin(wlm_store *store, const wlmi_pin_record *pin);
/* Takes the pin for the same away, whatever its variant; WLM_ERR_NOT_FOUND where there is none. */
wlm_status wlmi_store_unpin(wlm_store *store, const wlmi_pin_record *pin);
/* The pins of a class, or of all where that is NULL, in the order of wlmi_pin_compare: wlmi_pins_free. */
wlm_status wlmi_store_load_pins(wlm_store *store, const char *device_class, wlmi_pin_record **pins, int64_t *count);
/* All that are whole, in a store that is damaged. */
wlm_status wlmi_store_salvage_pins(wlm_store *store, wlmi_pin_record **pins, int64_t *count);

#endif
