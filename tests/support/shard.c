#include "support/shard.h"

#include <stdio.h>
#include <stdlib.h>

test_shard test_shard_of(int argc, char **argv) {
  long part = 1, parts = 1;
  char rest;
  if (argc > 2 || (argc == 2 && sscanf(argv[1], "%ld/%ld%c", &part, &parts, &rest) != 2) || part < 1 || part > parts) {
    fprintf(stderr, "%s: the only argument is PART/PARTS, for example 2/4\n", argv[0]);
    exit(2);
  }
  return (test_shard){part - 1, parts};
}

int64_t test_shard_count(test_shard shard, int64_t count) {
  return (count - shard.part + shard.parts - 1) / shard.parts;
}

int64_t test_shard_index(test_shard shard, int64_t k) { return k * shard.parts + shard.part; }
