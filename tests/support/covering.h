/* The covering set: the variants and problems with which emitted kernels are tested. It has every value of every
 * parameter of every family; every possible pair of {family, operator, rowptr type, values or none, empty policy,
 * sampling strategy with its norm, types of B and the values, colind type, type of argmax indices or none, heads};
 * and for every family each type of B and C with each {message, reduction, pair of index types, type of argmax
 * indices, heads or one value}. Variants, N and S take turns. It also has user-defined operators: each family with
 * each type; SDDMM: every message with each family, and each type with sum and mean; products with A^T: each type,
 * and for families that serve nothing else each type with each message; backward passes of sampled products: each
 * type, strategy and norm; attention and its gradient: each type. The full set, for `./check --full`, adds every
 * variant with every {message, reduction, rowptr type, values or none, empty policy, sampling strategy with its norm,
 * N, S of the lists} that it serves. A seed always gives the same set. */
#ifndef WLM_TESTS_COVERING_H
#define WLM_TESTS_COVERING_H

#include "generator/generator.h"

typedef struct covering_entry {
  wlmi_spec spec;
  char variant[WLM_VARIANT_NAME];
  int first; /* of its family to have one of its parameter values, in the full set of its variant: tested with every
              * check that there is */
  int own;   /* the number of the user's operator and epilogue that it has, from 1; 0: none */
} covering_entry;

typedef struct covering {
  covering_entry *entries;
  int64_t count, capacity;
} covering;

wlm_status covering_make(wlmi_generator *generator, const wlmi_limits *limits, uint64_t seed, int full, covering *out);
/* Writes the set to a file, and reads it in any program of the same build. */
void covering_save(const covering *set, const char *path);
void covering_load(const char *path, covering *out);
/* The set of seed 1. ctest makes the sets once, with the program tests/covering_sets.c, and names their folder in
 * WARPLOOM_COVERING; without that the set is made here. Fails the running test where it cannot be made. */
void covering_get(wlmi_generator *generator, const wlmi_limits *limits, int full, covering *out);
void covering_path(const char *folder, const wlmi_limits *limits, int full, char *path, size_t size);
int covering_full(void); /* whether WARPLOOM_FULL is set in the environment */
void covering_release(covering *set);

/* "row_crc/cf=2,rows=4 n=33 op=mul.sum,..." */
void covering_describe(const covering_entry *entry, char *text, size_t size);

#endif
