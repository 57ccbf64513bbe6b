/* The one argument block of every kernel, CUDA and host. This text is compiled into the library and
 * stands at the top of every emitted source, so it includes nothing. long long is 64 bits on all targets. */
#ifndef WLM_ARGS_H
#define WLM_ARGS_H

struct wlm_args {
  long long rows, cols, nnz, n, ldb, ldc; /* ldb, ldc in elements */
  const void *rowptr, *colind, *values;   /* values NULL = every edge is 1 */
  const void *order;                      /* of a transpose: where in `values` the value of each edge is */
  const void *a_rowptr;                   /* rowptr of A itself, transposed or not */
  const void *b;
  void *c;              /* of an SDDMM: nnz values */
  const void *x;        /* of an SDDMM: rows x n, leading dimension ldc */
  const void *bias;     /* n elements or NULL */
  void *arg;            /* rows x n winning positions or NULL */
  void *workspace;
  const void *prepared;
  double alpha, beta;
  long long scaled;     /* 0 = alpha is 1 and beta 0 */
  long long fresh;      /* 1 = work that was enqueued before may still write rowptr and colind */
  long long blocks, units; /* of the first execute pass: unit blocks, and units of each but the last ones */
  unsigned long long seed;
  long long sample_width;
  long long heads, head_width; /* values of an edge; columns that each of them is for */
};

#endif
