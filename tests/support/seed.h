/* The seed of a run. CI makes a part of many like checks and draws it by this seed, so that some fifty commits make
 * all of them. ./check derives the seed from the commit and prints it; WARPLOOM_SEED=SEED draws the same part again. */
#pragma once

/* Whether this run makes the check, on average one in `one_in`; the text names it. With WARPLOOM_FULL every check. */
int test_is_drawn(const char *check, int one_in);
