/* Divides a long program into several ctest tests: the argument "2/4" runs the second of four parts. */
#pragma once

#include <stdint.h>

typedef struct test_shard {
  int64_t part, parts; /* part counts from 0 */
} test_shard;

/* Parses the program's argument; without one the shard is the whole program. An invalid argument ends the program. */
test_shard test_shard_of(int argc, char **argv);
/* Deals indices below `count` to the parts in turn: returns how many this part has, and the k-th of them. */
int64_t test_shard_count(test_shard shard, int64_t count);
int64_t test_shard_index(test_shard shard, int64_t k);
