/* The messages of the covering set (covering.h). */
#pragma once

#include "warploom/warploom_message.h"

/* Every operand's place and width, every kind of result, each type of B and of positions, heads that lanes of a group
 * share, and widths of vectors. Families serve all of these that are not sampled, or none. */
typedef struct covering_message {
  const char *text;
  wlm_type type, values;
  wlm_index rowptr, colind;
  int64_t n, heads;
  int has_values, transpose, want_argmax;
  wlm_index argmax_type; /* also of positions that the message reads */
  wlm_sampling sampling; /* a sampled message is served by other families */
} covering_message;

extern const covering_message covering_messages[];
extern const int covering_message_count;

/* Fills *csr with the types of the matrix; it has values if csr->values is set. */
wlm_problem covering_message_problem(const covering_message *message, wlm_csr *csr);
