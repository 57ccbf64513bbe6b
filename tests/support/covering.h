/* The covering set: the variants and problems with which emitted kernels are tested. It contains
 *   - every value of every parameter of every family
 *   - every possible pair of {family, operator, rowptr type, values or none, empty policy, sampling strategy with its
 *     norm, types of B and the values, colind type, type of argmax indices or none, heads}
 *   - each family and type of B and C with each {message, reduction, pair of index types, type of argmax indices, heads
 *     or one value}
 *   - user-defined operators: each family with each type
 *   - SDDMM: each family with each message, and each type with sum and mean
 *   - products with A^T: each type, and with each message in families that serve nothing else
 *   - backward passes of sampled products: each type, strategy and norm
 *   - attention and its gradient: each type
 *   - messages: each type, place and width of operands, kind of result, and transpose (covering_messages.h).
 * Variants, N and S take turns. The full set, for `./check --full`, adds every variant with every {message, reduction,
 * rowptr type, values or none, empty policy, sampling strategy with its norm, N, S} of the lists that it serves. A seed
 * always gives the same set. */
#pragma once

#include "generator/generator.h"

typedef struct covering_entry {
  wlmi_spec spec;
  char variant[WLMI_VARIANT_NAME];
  int first;       /* the first entry with one of its family's parameter values (in the full set: of its variant); such
                    * entries are tested with every check */
  int in_families; /* the first entry of its family and operation; it is also in the sample */
  int in_sample;   /* the first entry of its family and kind of problem, or type (covering_kinds.h) */
  int own;         /* the number of its user-defined operator and epilogue, or of its message, from 1; 0 = none */
} covering_entry;

typedef struct covering {
  covering_entry *entries;
  int64_t count, capacity;
} covering;

wlm_status covering_make(wlmi_generator *generator, const wlmi_limits *limits, uint64_t seed, int full, covering *out);
/* Writes the set to a file, and reads it in another program of the same build. */
void covering_save(const covering *set, const char *path);
void covering_load(const char *path, covering *out);
/* The set of seed 1. ctest makes the sets once, with the program tests/covering_sets.c, and passes their folder in
 * WARPLOOM_COVERING; without this variable the function makes the set. Fails the running test on an error. */
void covering_get(wlmi_generator *generator, const wlmi_limits *limits, int full, covering *out);
void covering_path(const char *folder, const wlmi_limits *limits, int full, char *path, size_t size);
int covering_full(void); /* whether WARPLOOM_FULL is set in the environment */
void covering_release(covering *set);

/* Writes for example "row_crc/cf=2,rows=4 n=33 op=mul.sum,...". */
void covering_describe(const covering_entry *entry, char *text, size_t size);
