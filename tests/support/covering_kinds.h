/* A small part of the covering set: one entry of each family and kind of problem. */
#ifndef WLM_TESTS_COVERING_KINDS_H
#define WLM_TESTS_COVERING_KINDS_H

#include "support/covering.h"
#include "support/shard.h"

/* Keeps the first entry of each family and kind of problem, and of these the shard's. Kinds differ in the operation, in
 * the sign of transpose, argmax indices, sampling and heads, and in whether the operator is the user's. */
void covering_keep_kinds(covering *set, test_shard shard);

#endif
