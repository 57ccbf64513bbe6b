/* Replaces a family name by one of its variants: row_crc by row_crc/cf=2,rows=8. */
#pragma once

#include "generator/generator.h"
#include "runtime/context.h"

/* Replaces the name of a family with parameters by a variant: the fastest one measured on the matrix, or else the
 * fastest that the cost model predicts, or else the family's first. Other names stay. `matrix` may be NULL.
 * WLM_ERR_INVALID_ARGUMENT if no variant of the family serves the problem. */
wlm_status wlmi_family_best(wlm_context *context, const wlm_matrix *matrix, const wlmi_spec *spec, const char *name,
                            char variant[WLMI_VARIANT_NAME]);
/* The same without a device: the family's first variant. */
wlm_status wlmi_family_first(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                             const char *name, char variant[WLMI_VARIANT_NAME]);
