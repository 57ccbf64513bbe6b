/* Divides a long program into several ctest tests: the argument "2/4" runs the second of four parts. */
#ifndef WLM_TESTS_SHARD_H
#define WLM_TESTS_SHARD_H

#include <stdint.h>

typedef struct test_shard {
  int64_t part, parts; /* part from 0 */
} test_shard;

/* All of it where there is no argument; ends the program where there is another one. */
test_shard test_shard_of(int argc, char **argv);
/* Indices below `count` are dealt to the parts in turn: how many this part has, and which is its k-th. */
int64_t test_shard_count(test_shard shard, int64_t count);
int64_t test_shard_index(test_shard shard, int64_t k);

#endif
