/* The operands of attention besides B and C: terms of rows and columns, and for its gradient the log of sums, delta,
 * and the results besides db. They are random numbers from a seed, uniform in [-1, 1], and lse in [1, 3], so that
 * weights are below 1. */
#ifndef WLM_TUNER_ATTENTION_OPERANDS_H
#define WLM_TUNER_ATTENTION_OPERANDS_H

#include "core/reference/message.h"
#include "tuner/operands.h"

/* Fills `terms` and the call. `csr` is op(A). */
wlm_status wlmi_attention_operands_make(wlmi_operands *operands, const wlm_csr *csr, uint64_t seed);
void wlmi_attention_operands_release(wlmi_operands *operands);

/* Computes the references of all outputs, as wlmi_output_reference says. */
wlm_status wlmi_attention_operands_reference(const wlmi_operands *operands, const int64_t *row_ids, int64_t row_count,
                                             const int64_t *edge_first, const wlmi_message_reference *references);

#endif
