/* A family name in the place of a variant: row_crc instead of row_crc/cf=2,rows=8. */
#ifndef WLM_CLI_FAMILY_H
#define WLM_CLI_FAMILY_H

#include "generator/generator.h"
#include "runtime/context.h"

/* The name of a family that has parameters becomes that of one of its variants; any other name stays. `matrix` may be
 * NULL. The variant is the fastest one measured on the matrix, else the fastest that the cost model predicts, else the
 * family's first. WLM_ERR_INVALID_ARGUMENT where no variant of the family computes the problem. */
wlm_status wlmi_family_best(wlm_context *context, const wlm_matrix *matrix, const wlmi_spec *spec, const char *name,
                            char variant[WLM_VARIANT_NAME]);
/* The same without a device that runs anything: the family's first. */
wlm_status wlmi_family_first(wlmi_generator *generator, const wlmi_spec *spec, const wlmi_limits *limits,
                             const char *name, char variant[WLM_VARIANT_NAME]);

#endif
