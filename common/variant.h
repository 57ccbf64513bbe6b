/* A variant as a value: its family and, of each parameter, which of the listed values it has. Names stand at the
 * command line, in the store and in what explain shows. A table of families turns one into the other; the generator
 * fills it once from family.lua. A family's id is its place in this table, so ids are never stored. */
#ifndef WLM_COMMON_VARIANT_H
#define WLM_COMMON_VARIANT_H

#include <string.h>

#include "common/strings.h"

enum { WLM_VARIANT_NAME = 128, WLM_PARAMETERS = 8, WLM_PARAMETER_VALUES = 16, WLM_FAMILIES = 64 };

/* Variants of one family compare by their bytes as family.lua lists them. No padding: it is hashed as bytes. */
typedef struct wlmi_variant {
  uint8_t family;                 /* 1 = the first of the table; 0 = no variant, or one that is not in the table */
  uint8_t values[WLM_PARAMETERS]; /* places in the lists of values; 0 behind the last parameter */
} wlmi_variant;

typedef struct wlmi_parameter {
  const char *name;
  int value_count;
  const char *values[WLM_PARAMETER_VALUES]; /* integers or words, as names spell them */
} wlmi_parameter;

typedef struct wlmi_family {
  const char *name;
  int parameter_count;
  wlmi_parameter parameters[WLM_PARAMETERS];
} wlmi_family;

typedef struct wlmi_families {
  int count;
  wlmi_family list[WLM_FAMILIES];
  wlmi_strings texts;
} wlmi_families;

/* A family behind the others; of the last family a value behind the others, of a new parameter where it is another one
 * than before. WLM_ERR_TEMPLATE where there is no room. */
wlm_status wlmi_families_add(wlmi_families *families, const char *name);
wlm_status wlmi_families_add_value(wlmi_families *families, const char *parameter, const char *value);
void wlmi_families_release(wlmi_families *families);                                  /* also of a zeroed one */
int wlmi_family_find(const wlmi_families *families, const char *name, size_t length); /* 0 = it is not there */

/* "row_crc/cf=2,rows=4", the parameters in any order. WLM_ERR_INVALID_ARGUMENT with what would be understood as the
 * detail text; *variant is zeroed then. */
wlm_status wlmi_variant_parse(const wlmi_families *families, const char *name, wlmi_variant *variant);
/* The same of a name from the store, which may be of another version: then *variant is zeroed and nothing is an error.
 */
void wlmi_variant_recognise(const wlmi_families *families, const char *name, wlmi_variant *variant);
/* The canonical name; "" for no variant. 0 where it does not fit. */
int wlmi_variant_print(const wlmi_families *families, const wlmi_variant *variant, char name[WLM_VARIANT_NAME]);
/* The value of a parameter that is an integer, otherwise 0. */
int wlmi_variant_integer(const wlmi_families *families, const wlmi_variant *variant, const char *parameter);

static inline int wlmi_variant_compare(const wlmi_variant *a, const wlmi_variant *b) { return memcmp(a, b, sizeof *a); }
/* What is no variant is the same as nothing. */
static inline int wlmi_variant_same(const wlmi_variant *a, const wlmi_variant *b) {
  return a->family && !wlmi_variant_compare(a, b);
}

#endif
