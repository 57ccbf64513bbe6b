/* The float64 reference of all outputs of a call. */
#pragma once

#include "core/reference/message.h"
#include "tuner/operands.h"

/* What one result of some lines should be; see core/reference/message.h. `references` has one for each result. */
typedef wlmi_reference_result wlmi_references[WLM_MAX_RESULTS];

/* Of a message: what its reference needs. */
wlmi_message_walk wlmi_operands_walk(const wlmi_operands *operands);

/* Allocates `rows` lines for outputs of rows and `edges` for those of edges. */
wlm_status wlmi_references_make(const wlmi_operands *operands, int64_t rows, int64_t edges, wlmi_references references);
void wlmi_references_release(wlmi_references references); /* also of zeroed ones */

/* Computes the references of the rows of the result in `row_ids`.
 *   edge_first   row_count + 1: the line of the first edge of each row in outputs of edges. A row whose next one begins
 *                at the same line has its edges left out. */
wlm_status wlmi_output_reference(const wlmi_operands *operands, const int64_t *row_ids, int64_t row_count,
                                 const int64_t *edge_first, const wlmi_reference_result *references);
