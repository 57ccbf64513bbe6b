/* A program: a variant emitted for a problem, as source text and a table of launches. The generator fills it and the
 * runtime reads it. */
#pragma once

#include "core/problem/spec.h"
#include "core/problem/variant.h"

typedef enum wlmi_target { WLMI_TARGET_CUDA, WLMI_TARGET_HOST } wlmi_target;

/* The properties of a device that decide which variants are valid and how fast they are. */
typedef struct wlmi_limits {
  wlmi_target target;
  int arch;              /* compute capability, 90 for sm_90; 0 on the host */
  int threads_per_block; /* 0 on the host */
  int64_t shared_bytes;  /* a block's dynamic shared memory after opt-in */
  int processors;        /* multiprocessors, or cores */
  int64_t l2_bytes;      /* last-level cache; 0 = not known */
  int any_width; /* 1 = the text of a kernel serves any number of columns that its vector divides, and variants that
                  * only waste threads at this one are candidates, too */
} wlmi_limits;

/* What a pass divides among its blocks: rows, non-zeros or columns of the matrix that the kernels walk. BLOCKS = the
 * unit blocks of the program's first execute pass. */
typedef enum wlmi_units {
  WLMI_UNITS_ONE,
  WLMI_UNITS_ROWS,
  WLMI_UNITS_NNZ,
  WLMI_UNITS_ROWS_NNZ,
  WLMI_UNITS_BLOCKS,
  WLMI_UNITS_COLS
} wlmi_units;
typedef enum wlmi_when { WLMI_WHEN_EXECUTE, WLMI_WHEN_PREPARE } wlmi_when;
/* Which axis of the grid moves fastest: blocks of units (rows, non-zeros) or blocks of columns. */
typedef enum wlmi_axis { WLMI_AXIS_UNITS_FIRST, WLMI_AXIS_COLUMNS_FIRST } wlmi_axis;

typedef struct wlmi_pass {
  char kernel[64];
  wlmi_when when; /* a prepare pass reads rowptr and colind, writes `prepared` and knows neither B nor C */
  wlmi_units units;
  wlmi_axis axis;
  int64_t units_per_block;   /* >= 1; a matrix with rows gets at least one block */
  int64_t columns_per_block; /* 0 = all columns in one block */
  /* Blocks that the whole device holds at once (a wave), and its multiprocessors; 0 = the pass does not balance its
   * blocks. Otherwise the number of unit blocks is rounded up to a multiple of the multiprocessors, or to whole waves
   * if there are more blocks than one wave. The units are divided evenly, at most units_per_block a block, so all
   * multiprocessors get equally many blocks. */
  int64_t wave, processors;
  int threads;               /* threads of a CUDA block; 0 on the host, where OpenMP runs the blocks */
  int64_t shared_bytes;      /* dynamic */
  int dependent;             /* from CUDA sm_90 on: the pass may start while the one before it ends; it waits by itself
                              * before it reads results */
  int64_t nonzeros_per_unit; /* of ROWS_NNZ: so many non-zeros are one unit; 0 = each is one */
} wlmi_pass;

/* bytes = one + rows * R + nnz * Z + n * N + blocks * U + rows_n * R * N + blocks_n * U * N + cols_n * C * N,
 * where C is the number of columns of the matrix and U the number of unit blocks of the program's first execute pass,
 * whatever its prepare passes cover. */
typedef struct wlmi_bytes {
  int64_t one, rows, nnz, n, blocks, rows_n, blocks_n, cols_n;
} wlmi_bytes;

/* The matrix that the kernels of a program walk, and the columns of B. */
typedef struct wlmi_extent {
  int64_t rows, cols, nnz, n;
} wlmi_extent;

enum { WLMI_MAX_PASSES = 6 };

typedef struct wlmi_program {
  char variant[WLMI_VARIANT_NAME]; /* canonical name */
  char *source;                    /* complete: prelude, operator block, kernels */
  int pass_count;
  wlmi_pass passes[WLMI_MAX_PASSES];
  wlmi_bytes workspace, prepared; /* `prepared` is all 0 if there is no prepare pass */
  int max_registers;              /* registers that a kernel may use, checked by a test; 0 on the host */
  int max_spilled;                /* bytes of registers that it may write to and read from local memory, likewise */
  int deterministic;              /* gives the same bits every time */
  int uses_b;                     /* reads B, which may be NULL otherwise */
  int walks_a;    /* of a transposed problem, or WLM_ARGMAX_GRADIENT: the kernels get A itself instead of op(A) */
  int is_batched; /* computes a batch in one launch */
  int64_t rows_together; /* it takes a column-major C (struct wlm_steps), and threads of a warp store elements of so
                          * many neighbouring rows at once; 0 = it takes row-major arrays */
  int takes_b_columns;   /* and a column-major B */
  char split[16];        /* how it splits a row: "none", "carry" or "atomic" */
} wlmi_program;

/* A variant that is valid for a problem on a device, before any source text is made of it. */
typedef struct wlmi_candidate {
  wlmi_variant value;
  char variant[WLMI_VARIANT_NAME]; /* its canonical name */
  int lanes, batch;                /* its parameters of these names; 0 = it has none */
  wlmi_pass pass;                  /* the first execute pass that walks the matrix; a pass over columns only clears C */
  int launches;                    /* of one call */
  int prepares;                    /* must be prepared before it can run */
  int whole_rows;                  /* never splits a row: one group of threads walks it from end to end */
  int walks_a;                     /* as of a program */
  int simple;                      /* other kernels are compared with it */
} wlmi_candidate;

/* All candidates for a problem on a device, in the order of their values. */
typedef struct wlmi_candidate_list {
  const wlmi_families *families;
  const wlmi_candidate *candidates;
  int64_t count;
} wlmi_candidate_list;

/* NULL where the variant is no candidate. */
const wlmi_candidate *wlmi_candidate_find(const wlmi_candidate_list *list, const wlmi_variant *variant);
const wlmi_candidate *wlmi_candidate_named(const wlmi_candidate_list *list, const char *variant);
/* How badly the columns that it covers at once fit n: a surplus column counts 1, a missing one 4. */
int64_t wlmi_candidate_misfit(const wlmi_candidate *candidate, int64_t n);

void wlmi_program_release(wlmi_program *program);

/* Programs that belong to no family. */
typedef enum wlmi_helper {
  WLMI_HELPER_NONE,      /* the program of a variant */
  WLMI_HELPER_GRADIENT,  /* WLM_ARGMAX_GRADIENT, whose only program it is */
  WLMI_HELPER_STATS,     /* measures row statistics on a CUDA device (runtime/stats_device.h) */
  WLMI_HELPER_TRANSPOSE, /* builds A^T on a CUDA device */
  WLMI_HELPER_COO,       /* makes CSR from coordinates of the spec's colind_type, with offsets of its rowptr_type */
  WLMI_HELPER_VALIDATE,  /* finds the first wrong row of a matrix on a CUDA device (runtime/validate.h) */
  WLMI_HELPER_BLOCKS,    /* makes CSR of block rows of the spec's index types (runtime/bsr.c) */
  WLMI_HELPER_LAYOUT,    /* copies arrays between columns and rows (runtime/dispatch/layout.h) */
  WLMI_HELPERS
} wlmi_helper;

/* Every program has one. */
const wlmi_pass *wlmi_program_first_execute(const wlmi_program *program);

/* Blocks of one pass over a matrix, for each block of columns of B. 0 = nothing to launch: the matrix has no rows or,
 * for a pass over its columns, no columns. first_blocks: the blocks of the first execute pass. */
int64_t wlmi_pass_unit_blocks(const wlmi_pass *pass, const wlmi_extent *extent, int64_t first_blocks);
/* Units of each block except the last ones: units_per_block, or fewer if the pass balances its blocks. */
int64_t wlmi_pass_units_each(const wlmi_pass *pass, const wlmi_extent *extent, int64_t first_blocks);
/* 0 only where n is 0. */
int64_t wlmi_pass_column_blocks(const wlmi_pass *pass, int64_t n);
/* WLM_ERR_OVERFLOW where the size does not fit. */
wlm_status wlmi_bytes_size(const wlmi_bytes *bytes, const wlmi_extent *extent, int64_t blocks, size_t *size);
