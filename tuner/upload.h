/* Copies a matrix from host memory to a context's device. */
#pragma once

#include "core/csr/csr.h"
#include "core/problem/spec.h"
#include "runtime/context.h"

typedef struct wlmi_upload {
  wlmi_device *device;
  void *rowptr, *colind, *values;
  wlm_matrix *matrix;
} wlmi_upload;

/* I32 if the offsets fit, as most users have it. */
wlm_index wlmi_upload_rowptr_type(const wlmi_csr_host *csr);
/* WLM_ERR_OVERFLOW if nnz does not fit the type. The context must outlive the upload. Values are f32, or rounded to
 * another type; head h of an edge with the value v gets v (h + 1) / heads. */
wlm_status wlmi_upload_create_typed(wlm_context *context, const wlmi_csr_host *csr, wlm_index rowptr_type,
                                    wlm_index colind_type, wlm_type value_type, int64_t heads, wlmi_upload *upload);
/* The same with 32-bit columns and one f32 value per edge. */
wlm_status wlmi_upload_create(wlm_context *context, const wlmi_csr_host *csr, wlm_index rowptr_type,
                              wlmi_upload *upload);
/* Other values for the pattern of an upload, which must be released later. */
wlm_status wlmi_upload_create_values(wlm_context *context, const wlmi_upload *pattern, const wlmi_csr_host *csr,
                                     wlm_type value_type, wlmi_upload *upload);
/* Makes a synthetic matrix that has the stats of a recorded one, that of wlmi_stand_in_name, with the types of the spec
 * on the context's device. If the spec's problem is transposed, the stats are those of A^T, and the matrix made is A.
 */
wlm_status wlmi_stand_in_make(wlm_context *context, const wlm_stats *stats, const wlmi_spec *spec, wlmi_upload *upload);
void wlmi_upload_release(wlmi_upload *upload); /* also of a zeroed one */
