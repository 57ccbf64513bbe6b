/* The sample, a small part of the covering set: one entry of each family and kind of problem, and of each family,
 * operation and type. Kinds differ in the operation and in whether there are a transpose, argmax indices, sampling,
 * heads and an operator of the user. */
#pragma once

#include "support/covering.h"
#include "support/shard.h"

/* Sets in_families and in_sample of the first entries of each family and kind. covering_make calls it. */
void covering_mark_sample(covering *set);
/* Keeps the shard's entries of the sample. */
void covering_keep_sample(covering *set, test_shard shard);
