/* The content of a store as plain arrays: measurements, pins and recorded problems, but nothing that is derived from
 * them. */
#pragma once

#include "core/records/fields.h"

/* A pin: the variant that a user fixed for one problem and N, on one matrix or in one bucket. Two stores may have
 * contradicting pins; a merge or import then keeps the existing one. */
typedef struct wlmi_pin_record {
  char *device_class;
  char *target; /* a bucket as wlmi_bucket_print writes it, or a fingerprint as 32 hexadecimal digits */
  char *problem;
  int64_t n;
  char *variant;
} wlmi_pin_record;

/* A cost model, as wlmi_model_write makes it. */
typedef struct wlmi_model_record {
  char *name;
  int64_t made_at; /* seconds since 1970 */
  void *data;
  size_t size;
} wlmi_model_record;

/* WLM_ERR_INVALID_ARGUMENT naming the invalid field. */
wlm_status wlmi_pin_check(const wlmi_pin_record *pin);
/* {"pin":TARGET,"class":...,"problem":...,"n":32,"variant":...} without a line end. */
void wlmi_pin_json(const wlmi_pin_record *pin, wlmi_text *out);
/* Orders by class, target, problem and n; 0 if both pins are for the same. */
int wlmi_pin_compare(const wlmi_pin_record *a, const wlmi_pin_record *b);
wlm_status wlmi_pin_copy(const wlmi_pin_record *pin, wlmi_pin_record *copy); /* owns its strings */
void wlmi_pin_release(wlmi_pin_record *pin);
void wlmi_pins_free(wlmi_pin_record *pins, int64_t count);

/* A recorded problem: a program ran it, but nothing similar was tuned, so it is kept to be tuned later. It has the
 * stats of the matrix, from which a similar matrix can be made. Its id is a hash of its content, as a measurement's is,
 * so merging is a union. */
typedef struct wlmi_recorded {
  char *device_class;
  wlm_stats stats; /* of op(A) */
  char *problem;   /* wlmi_spec_key */
  int64_t n;
} wlmi_recorded;

/* As a measurement with the fields WLMI_OF_RECORDED. */
wlmi_measurement_record wlmi_recorded_fields(const wlmi_recorded *recorded);

/* WLM_ERR_INVALID_ARGUMENT naming the invalid field. */
wlm_status wlmi_recorded_check(const wlmi_recorded *recorded);
/* {"recorded":CLASS,"fingerprint":...,"rows":...,...,"problem":...,"n":32} without a line end. */
void wlmi_recorded_json(const wlmi_recorded *recorded, wlmi_text *out);
wlm_status wlmi_recorded_id(const wlmi_recorded *recorded, char id[WLMI_HASH_HEX]); /* of that line */
wlm_status wlmi_recorded_copy(const wlmi_recorded *recorded, wlmi_recorded *copy);  /* owns its strings */
void wlmi_recorded_release(wlmi_recorded *recorded);                                /* also of a zeroed one */
void wlmi_recorded_free(wlmi_recorded *list, int64_t count);

typedef struct wlmi_content {
  wlmi_measurement_record *records; /* ordered by id if they were loaded */
  int64_t count, capacity;
  wlmi_pin_record *pins;
  int64_t pin_count, pin_capacity;
  wlmi_recorded *recorded; /* ordered by id if they were loaded */
  int64_t recorded_count, recorded_capacity;
} wlmi_content;

void wlmi_content_release(wlmi_content *content); /* also of a zeroed one */
