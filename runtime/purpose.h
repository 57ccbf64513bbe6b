/* What kernels are for: a program, and of the problem all that its text depends on. By its purpose a kernel of an
 * archive is found without emitting its text. */
#pragma once

#include "core/base/hash.h"
#include "generator/generator.h"

/* What the text of a program depends on: on n and the columns of a head, on those of a head alone, or on neither. Each
 * has a hash of its own, and a kernel serves a problem if an archive has one of them. */
typedef enum wlmi_columns { WLMI_COLUMNS_ALL, WLMI_COLUMNS_OF_HEAD, WLMI_COLUMNS_ANY, WLMI_COLUMNS_KINDS } wlmi_columns;

/* `variant`: its name; "" = a helper. */
void wlmi_purposes(const char *variant, wlmi_helper helper, const wlmi_spec *spec, const wlmi_limits *limits,
                   wlmi_hash purposes[WLMI_COLUMNS_KINDS]);

/* The purposes of the text with the hash `text`, which was emitted for these arguments: one in the form for n, and one
 * in the form for any number of columns, where these are equal. Emits the program for other columns to see what the
 * text depends on. variant: NULL = WLMI_HELPER_GRADIENT. */
wlm_status wlmi_purposes_of(wlmi_generator *generator, const wlmi_variant *variant, const wlmi_spec *spec,
                            const wlmi_limits *limits, wlmi_hash text, wlmi_hash purposes[2], int *count);
