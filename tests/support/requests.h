/* One product, gradient or SDDMM of every kind, for the matrices of support/drawn.h. */
#pragma once

#include "support/drawn.h"

typedef struct request {
  const char *name;
  wlm_message message;
  wlm_reduce reduce;
  int transpose, argmax, gradient, sddmm, heads, epilogue, pattern;
  wlm_sample sample;
} request;

enum { REQUESTS = 12 };
extern const request requests[REQUESTS];

wlm_problem request_problem(const request *request);

/* All arrays to which a call may write. */
typedef struct results {
  float c[DRAWN_DENSE], db[DRAWN_DENSE], dvalues[DRAWN_NNZ * DRAWN_HEADS];
  int32_t argmax[DRAWN_DENSE];
} results;

/* What arrays have before the first call: C numbers, which a beta reads. */
void results_begin(results *to);
wlm_execute_args request_call(const request *request, const drawn *operands, results *to);
