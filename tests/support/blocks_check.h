/* wlm_csr_from_bsr: blocks of several sizes, orders, types and bases become CSR arrays of exactly the needed size. */
#pragma once

#include "runtime/context.h"

/* Converts on the context's device, whose memory it uses. Fails the running test where an array is wrong. */
void blocks_check(wlm_context *context);
