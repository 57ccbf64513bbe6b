/* A variant as a small value: its family, and for each parameter the index of its value in the family's list. The
 * command line, the store and explain use names instead. A table of families, which the generator fills once from
 * family.lua, converts between the two. A family's id is its position in this table, so ids are never stored. */
#pragma once

#include <string.h>

#include "core/base/strings.h"

enum { WLMI_VARIANT_NAME = 128, WLMI_PARAMETERS = 8, WLMI_PARAMETER_VALUES = 16, WLMI_FAMILIES = 64 };

/* Compared by bytes, variants of one family are in the order of family.lua. No padding, because it is hashed as bytes.
 */
typedef struct wlmi_variant {
  uint8_t family;                  /* 1 = the first of the table; 0 = no variant, or an unknown one */
  uint8_t values[WLMI_PARAMETERS]; /* indices into the lists of values; 0 behind the last parameter */
} wlmi_variant;

typedef struct wlmi_parameter {
  const char *name;
  int value_count;
  const char *values[WLMI_PARAMETER_VALUES]; /* integers or words, as names spell them */
} wlmi_parameter;

typedef struct wlmi_family {
  const char *name;
  const char *version; /* of its kernels: see wlmi_measurement_record */
  int parameter_count;
  wlmi_parameter parameters[WLMI_PARAMETERS];
} wlmi_family;

typedef struct wlmi_families {
  int count;
  wlmi_family list[WLMI_FAMILIES];
  wlmi_strings texts;
} wlmi_families;

/* Appends a family with its version; appends a value to the last family, of a new parameter if its name differs from
 * the last one's. WLM_ERR_TEMPLATE if there is no room. */
wlm_status wlmi_families_add(wlmi_families *families, const char *name, const char *version);
wlm_status wlmi_families_add_value(wlmi_families *families, const char *parameter, const char *value);
void wlmi_families_release(wlmi_families *families);                                  /* also of a zeroed one */
int wlmi_family_find(const wlmi_families *families, const char *name, size_t length); /* 0 = it is not there */
/* Of a variant's family; "" if it is not there. */
const char *wlmi_family_version(const wlmi_families *families, const char *variant);

/* "row_crc/cf=2,rows=4", the parameters in any order. WLM_ERR_INVALID_ARGUMENT, whose detail text lists what is valid;
 * *variant is zeroed then. */
wlm_status wlmi_variant_parse(const wlmi_families *families, const char *name, wlmi_variant *variant);
/* The same for a name from the store, which another version may have written: an unknown one zeroes *variant and is no
 * error. */
void wlmi_variant_recognise(const wlmi_families *families, const char *name, wlmi_variant *variant);
/* The canonical name; "" for no variant. 0 where it does not fit. */
int wlmi_variant_print(const wlmi_families *families, const wlmi_variant *variant, char name[WLMI_VARIANT_NAME]);
/* The value of a parameter that is an integer, otherwise 0. */
int wlmi_variant_integer(const wlmi_families *families, const wlmi_variant *variant, const char *parameter);

static inline int wlmi_variant_compare(const wlmi_variant *a, const wlmi_variant *b) { return memcmp(a, b, sizeof *a); }
/* 1 if both are the same variant; two unknown ones are never the same. */
static inline int wlmi_variant_same(const wlmi_variant *a, const wlmi_variant *b) {
  return a->family && !wlmi_variant_compare(a, b);
}
