/* warploom: sparse-dense matrix multiplication (SpMM) on GPUs, C = A * B with any message and reduction.
 *
 * A is sparse in CSR, B and C are dense. The library picks a kernel for your matrix from what was measured, compiles
 * it once, and runs it. A first product:
 *
 *   wlm_context *context;
 *   wlm_context_create(NULL, &context);                       // the first GPU, or the host where there is none
 *
 *   wlm_csr a = WLM_CSR_INIT;                                 // your arrays, in device memory
 *   a.rows = rows, a.cols = cols, a.nnz = nnz;
 *   a.rowptr = rowptr, a.colind = colind, a.values = values;  // int32, int32, float; values = NULL means all ones
 *   wlm_problem problem = WLM_PROBLEM_INIT;                   // sum of a * b in f32
 *   problem.n = 64;                                           // columns of B and C
 *   wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
 *   args.b = b, args.c = c, args.stream = stream;
 *   wlm_spmm(context, &a, &problem, &args);                   // enqueues C = A * B on the stream
 *
 * There are three ways to call, which give the same bits where they run the same kernel:
 *
 *   one call      wlm_spmm                                               plans and workspaces are cached inside
 *   planned       wlm_plan_create, [wlm_plan_prepare], wlm_plan_execute  a matrix that is used often
 *   mini-batch    wlm_plan_create, then wlm_plan_rebind and _execute     a new matrix at every step
 *
 * warploom_tune.h measures kernels on your matrices (tuning) and during real calls (online tuning).
 *
 * Layout. A is rows x cols in CSR; its offsets and columns count from 0, or from 1 (wlm_csr.base); the columns of a row
 * may be unsorted and repeated. B is cols x n and C rows x n, both row-major with leading dimensions ldb >= n and
 * ldc >= n, or each of them column-major (wlm_problem.b_order, c_order) with ldb >= cols and ldc >= rows. Sizes (up to
 * 2^59 - 1) and offsets are int64_t, so rows x n above 2^31 works. CSC needs no copy: the CSC arrays of a matrix are
 * the CSR arrays of its transpose, so give them as rowptr, colind and values, exchange rows and cols, and set
 * wlm_problem.transpose = 1.
 *
 * Ownership. What a wlm_*_create call gives you, you give back to the matching _destroy. Every pointer that you pass in
 * stays yours and must outlive the object that got it. Strings returned through char ** are released with
 * wlm_string_free.
 *
 * Devices. Device pointers and CUDA streams are void *, so this header needs no CUDA header. On a GPU work runs in the
 * device's primary context, as that of the CUDA runtime and of PyTorch does, so their pointers and streams can be
 * passed as they are. The stream NULL is the legacy default stream. On the host device a device pointer is an ordinary
 * pointer and streams are ignored. A context serves one device; use several contexts for several GPUs. A matrix and its
 * plans are used with the context that they were created in.
 *
 * Threads. A context and a matrix may be used by several threads at once, a plan as wlm_plan_execute says. Nothing may
 * be destroyed while another thread uses it. In a child of fork the host device works, and a GPU is WLM_ERR_DEVICE.
 *
 * Errors. Every fallible call returns a wlm_status, and wlm_error_detail() gives the calling thread a text that names
 * the argument or the cause. A NULL handle or a NULL argument that is needed is WLM_ERR_INVALID_ARGUMENT; the _destroy
 * functions and wlm_string_free accept NULL. A call that fails sets the object or text that it would give to NULL. An
 * address that is not a multiple of its element's size is WLM_ERR_INVALID_ARGUMENT. The library never exits, aborts or
 * prints; it logs through wlm_set_log. (OpenMP's runtime exits where it cannot create a thread. The library tries first
 * how many are allowed and uses fewer, but other code may take the last ones in between.)
 *
 * Structs and ABI. Structs begin with `size`. Initialise them with their WLM_*_INIT macro or, in a language without
 * macros, with wlm_*_init(pointer, size). Within one SOVERSION structs only grow: a smaller size, down to that of the
 * SOVERSION's first release, gets defaults for the missing fields; a larger one is accepted where its tail is zero. */
#ifndef WARPLOOM_WARPLOOM_H
#define WARPLOOM_WARPLOOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WLM_VERSION_MAJOR 0
#define WLM_VERSION_MINOR 3
#define WLM_VERSION_PATCH 0

#if defined(__GNUC__)
#define WLM_API __attribute__((visibility("default")))
#else
#define WLM_API
#endif

/* ---- status ------------------------------------------------------------------------------- */

/* name, message; the numeric values are the order of the list and never change. */
#define WLM_STATUS_MAP(X)                                            \
  X(OK, "success")                                                   \
  X(ERR_INVALID_ARGUMENT, "invalid argument")                        \
  X(ERR_UNSUPPORTED, "not supported")                                \
  X(ERR_OUT_OF_MEMORY, "out of memory")                              \
  X(ERR_OVERFLOW, "a size does not fit its type")                    \
  X(ERR_IO, "input or output failed")                                \
  X(ERR_PARSE, "malformed input")                                    \
  X(ERR_NOT_FOUND, "not found")                                      \
  X(ERR_NO_DEVICE, "the device is not there")                        \
  X(ERR_DEVICE, "the device reported an error")                      \
  X(ERR_NO_COMPILER, "no compiler for this device")                  \
  X(ERR_COMPILE, "the emitted source did not compile")               \
  X(ERR_TEMPLATE, "a template or family.lua is wrong")               \
  X(ERR_DATABASE, "the database cannot be used")                     \
  X(ERR_DATABASE_VERSION, "the database has another schema version") \
  X(ERR_NOT_READY, "the plan must be prepared before it can run")    \
  X(ERR_MISMATCH, "a result differs from the float64 reference")     \
  X(ERR_CANCELLED, "cancelled")                                      \
  X(ERR_INTERNAL, "internal error")

typedef enum wlm_status {
#define WLM_STATUS_ENUM(name, message) WLM_##name,
  WLM_STATUS_MAP(WLM_STATUS_ENUM)
#undef WLM_STATUS_ENUM
} wlm_status;

WLM_API const char *wlm_status_name(wlm_status status);    /* "WLM_ERR_IO"; static */
WLM_API const char *wlm_status_message(wlm_status status); /* "input or output failed"; static */
/* Detail of this thread's last call, "" if that returned WLM_OK; valid until the thread's next warploom call. Control
 * characters of names in it are shown as escapes. It is one line, except for a compiler's output (WLM_ERR_COMPILE). */
WLM_API const char *wlm_error_detail(void);

/* ---- context: a device, its measurements, compilers and the kernel cache ----------------------- */

typedef struct wlm_context wlm_context;
typedef struct wlm_matrix wlm_matrix;
typedef struct wlm_plan wlm_plan;
typedef struct wlm_device_allocator wlm_device_allocator;
typedef struct wlm_message_args wlm_message_args;             /* warploom_message.h */
typedef struct wlm_attention_operands wlm_attention_operands; /* warploom_attention.h */

typedef struct wlm_context_options {
  size_t size;
  const char *device; /* "host", "cuda:0"; NULL = the first GPU, or the host where there is none */
  /* database and kernel_cache: used only in folders to which no other user may write (docs/store.md, Other users). */
  const char *database;        /* user database; NULL = $XDG_DATA_HOME/warploom/tuned.db; "" = none */
  const char *system_database; /* read-only, shipped beside the library; NULL = the shipped one; "" = none */
  const char *kernel_cache;    /* NULL = $XDG_CACHE_HOME/warploom/kernels.db; "" = none */
  const char *templates; /* folder to read instead of the embedded templates; NULL = $WARPLOOM_TEMPLATES or embedded */
  /* 1 = keep a list of problems for which no similar case was tuned: up to 4,096, with the stats of their matrices. The
   * list is written to the user database when the context is destroyed; `warploom tune --recorded` tunes them on
   * synthetic matrices with these stats. */
  int record;
  /* 1 = never wait for a compiler when a plan is created: the best kernel that is already loaded, or the built-in one,
   * runs until a background thread has compiled the chosen kernel, and later calls run that. If the chosen kernel needs
   * a larger workspace, it runs as soon as calls pass one: ask wlm_plan_workspace_size again. Results may differ in the
   * last bits between the two kernels, so plans with policy.deterministic still wait. A kernel that must be prepared is
   * chosen only if it is loaded. Until their kernels are compiled, the host measures stats and builds A^T, from copies
   * of rowptr and colind; the A^T of a matrix with more than 4 million non-zeros waits for the compiler, and so does
   * one that is built in a stream capture. WLM_ARGMAX_GRADIENT runs in a form for any number of columns, if one is
   * loaded. A problem that no loaded kernel serves waits for the compiler. */
  int compile_in_background;
  /* Where all device memory of the context comes from; NULL = what wlm_set_device_allocator set. The struct is copied;
   * its functions and `user` must outlive the context. */
  const wlm_device_allocator *device_allocator;
  /* Compiled kernels that are used instead of compiling, and without a compiler instead of others (docs/install.md,
   * Compiled kernels); read-only. NULL = $WARPLOOM_KERNELS, or the archive beside the shipped database; "" = none. */
  const char *kernel_archive;
  /* Exported data to read besides the shipped one: JSON lines, tuning databases and kernel archives, or folders, which
   * stand for their files that end in .jsonl, .db and .archive, by name. They are never written, and a path or file
   * that cannot be used is an error. A later one counts before an earlier one, all before the shipped data, and the
   * user database before all (docs/deploying.md, Layers). The paths are copied. */
  const char *const *layers;
  int64_t layer_count;
} wlm_context_options;
#define WLM_CONTEXT_OPTIONS_INIT \
  { sizeof(wlm_context_options), NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 0 }

/* Opens a device and loads its measurements into an immutable snapshot. options may be NULL. A missing or broken
 * database, cache or compiler is logged and the context opens without it; so is a database or cache of another user, or
 * one that others may write to. A layer that cannot be used is an error, which names its path. Thread-safe. Errors:
 * WLM_ERR_NO_DEVICE, WLM_ERR_INVALID_ARGUMENT, WLM_ERR_TEMPLATE, WLM_ERR_OUT_OF_MEMORY; of layers WLM_ERR_NOT_FOUND,
 * WLM_ERR_PARSE, WLM_ERR_DATABASE, WLM_ERR_DATABASE_VERSION, WLM_ERR_IO. */
WLM_API wlm_status wlm_context_create(const wlm_context_options *options, wlm_context **context);
/* Destroy its matrices and plans first. On a GPU, work that was enqueued must have ended. */
WLM_API void wlm_context_destroy(wlm_context *context);
WLM_API const char *wlm_context_device_name(const wlm_context *context); /* lives as long as the context */
/* "host" or "cuda": what pointers and streams mean here. */
WLM_API const char *wlm_context_device_kind(const wlm_context *context);
/* A JSON object with the texts device, kind, arch, driver, compiler ("" = none; then only kernels run that the library
 * carries), database and system_database ("" = none), and the list `layers` of its files with measurements, the last
 * named first. Free with wlm_string_free. Errors: WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_context_info(const wlm_context *context, char **json);
/* Loads the databases again, to use what other processes tuned meanwhile. Thread-safe: a plan that is being created
 * sees either the old snapshot or the new one. A damaged database is logged and left out. If one cannot be read now,
 * for example because another process keeps it locked for a minute, the old snapshot stays. (wlm_context_create waits
 * half a second at most and then works without the database.) Errors of layers are those of wlm_context_create. Errors:
 * WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_context_refresh(wlm_context *context);

/* ---- what a problem may have besides; most leave it at the defaults --------------------------------- */

/* The result of an empty row before the epilogue. A user-defined operator gives its init in either case. */
typedef enum wlm_empty {
  WLM_EMPTY_ZERO,    /* 0 for sum, mean, max, min; 1 for prod */
  WLM_EMPTY_IDENTITY /* the identity of the reduction: -inf for max, +inf for min */
} wlm_empty;

/* C = activation(alpha * result + beta * C + bias); alpha, beta and the bias vector are given with each call. */
typedef struct wlm_epilogue {
  int bias; /* 1 = calls give n values that are added to every row */
  /* An expression over x: "relu", "leaky_relu(x,0.2)", "x/(1+exp(-x))"; NULL = none. */
  const char *activation;
} wlm_epilogue;

/* ES-SpMM edge sampling uses kept = min(width, d) edges of a row with d edges; if d <= width all of them, in order.
 *
 * The rows of A are sampled, also with transpose, for WLM_SDDMM and for WLM_MESSAGE. So the gradients of a sampled
 * product use the edges of that product when they are given its seed:
 *   dB       transpose = 1 and b = dC, with the same norm; for a forward mean reduce = WLM_SUM and WLM_NORM_KEPT
 *   dvalues  WLM_SDDMM with the same reduce and norm, which gives 0 for an edge that is left out
 * With transpose the norm is that of the edge's row of A, and a mean divides by the number of kept edges in the row of
 * A^T. An edge that is taken several times counts as often. Use another seed in each step of a training. */
typedef enum wlm_sample {
  WLM_SAMPLE_NONE,
  WLM_SAMPLE_BUCKET,          /* edge start + k */
  WLM_SAMPLE_FASTRAND,        /* edge start + (577 k mod d), as published */
  WLM_SAMPLE_FASTRAND_COPRIME /* the stride is the next one coprime with d */
} wlm_sample;
/* Of a sum. A mean always divides by the edges that are kept. */
typedef enum wlm_sample_norm {
  WLM_NORM_NONE,
  WLM_NORM_KEPT,    /* divide by kept */
  WLM_NORM_UNBIASED /* multiply by d / kept */
} wlm_sample_norm;
typedef struct wlm_sampling {
  wlm_sample sample;
  wlm_sample_norm norm;
  int64_t width; /* S, 8..2304 */
} wlm_sampling;

typedef struct wlm_policy {
  int deterministic; /* only kernels that give the same bits every time */
  /* How often the product will be executed with this matrix, as far as you know. From 2 on the choice is the kernel
   * with the least time + preparation / expected_calls. With 1, kernels that need wlm_plan_prepare are not considered.
   */
  int64_t expected_calls;
} wlm_policy;

typedef enum wlm_score { WLM_SCORE_GAT, WLM_SCORE_EDGE, WLM_SCORE_GATV2, WLM_SCORE_DOT } wlm_score; /* of attention */

/* Which elements of a dense array follow each other: those of a row, or those of a column as in Fortran. For WLM_SPMM,
 * its gradients and WLM_SDDMM. Of a column-major array ldb or ldc is the distance between columns, at least its rows.
 * Kernels of a GPU take arrays of two or more columns where they are, or copy them to the workspace and back, whichever
 * is expected to take less; on the host they are copied. That is part of the call's time. */
typedef enum wlm_order { WLM_ROW_MAJOR, WLM_COLUMN_MAJOR } wlm_order;

/* Batches. wlm_problem.batch products of one pattern run in one launch, each with its own B, C and values; 0 = nothing
 * is done. b_stride, c_stride and values_stride of wlm_execute_args are the elements from one product's array to the
 * next one's; with 0 all products read the same B or values. The products' parts of C must not overlap: c_stride is at
 * least the elements from the first to behind the last one of a C, or at least n where products lie side by side in
 * lines of C. The bias, alpha, beta and the seed are those of all. With batch = 1 the strides are not read.
 *
 * argmax and x, which have the shape of C, also have c_stride. dvalues_stride is that of the dvalues of WLM_SDDMM and
 * of argmax_dvalues, at least nnz (x heads), and b_stride also that of argmax_db. The gradients by argmax of a batch
 * are launched one product after the other. */

/* ---- the matrix A ------------------------------------------------------------------------------ */

typedef enum wlm_type { WLM_F32, WLM_F16, WLM_BF16, WLM_F64 } wlm_type;
typedef enum wlm_index { WLM_I32, WLM_I64, WLM_I16 } wlm_index; /* WLM_I16: of argmax alone */

typedef struct wlm_csr {
  size_t size;
  int64_t rows, cols, nnz;
  const void *rowptr; /* rows + 1, of rowptr_type, in device memory */
  const void *colind; /* nnz, of colind_type */
  const void *values; /* nnz (x heads, row-major) of value_type; NULL = every edge is 1, or has_values is set */
  wlm_index rowptr_type, colind_type;
  wlm_type value_type; /* the dense type of the problems, or f32 where that is f16 or bf16 */
  int has_values;      /* 1 = there are values, also where `values` is NULL: then each call gives them */
  const void *t_rowptr, *t_colind, *t_order; /* A^T, if you have it (CSR from a list of edges); NULL = none */
  int64_t base; /* 0 or 1: what rowptr, colind, t_rowptr and t_colind count from; positions of edges count from 0 */
} wlm_csr;
#define WLM_CSR_INIT \
  { sizeof(wlm_csr), 0, 0, 0, NULL, NULL, NULL, WLM_I32, WLM_I32, WLM_F32, 0, NULL, NULL, NULL, 0 }

/* ---- the problem: what is fixed for a plan ------------------------------------------------------ */

typedef enum wlm_operation {
  WLM_SPMM,      /* C = reduce_p(message(A[i,p], B[p,:])) */
  WLM_SDDMM,     /* the gradient of a product by the values of A: for each edge p = (i, k)
                  * dvalues[p] = sum over j of x[i,j] * d message(a_p, B[k,j]) / d a_p, with x = dC */
  WLM_ATTENTION, /* attention over the edges of each row, and with transpose = 1 its gradient: warploom_attention.h */
  WLM_ATTENTION_ROWS, /* the rest of its gradient with WLM_SCORE_GATV2 or _DOT */
  WLM_MESSAGE,        /* any message over rows, columns and edges, given by wlm_problem.custom: warploom_message.h */
  WLM_ARGMAX_GRADIENT /* the gradients of a max or min by its positions: wlm_execute_args.argmax_db */
} wlm_operation;

/* message(a, b), a = value of the edge (of the column's head; 1 where A has no values), b = element of B */
typedef enum wlm_message {
  WLM_MUL,    /* a * b */
  WLM_COPY_B, /* b */
  WLM_COPY_A, /* a */
  WLM_ADD,    /* a + b */
  WLM_SUB,    /* b - a */
  WLM_RSUB,   /* a - b */
  WLM_DIV,    /* b / a */
  WLM_RDIV    /* a / b */
} wlm_message;

/* mean divides by the number of edges used; max and min propagate NaN, and with argmax may give +0 for -0. */
typedef enum wlm_reduce { WLM_SUM, WLM_MEAN, WLM_MAX, WLM_MIN, WLM_PROD, WLM_CUSTOM } wlm_reduce;

typedef struct wlm_problem {
  size_t size;
  int64_t n; /* columns of B and C, 0 to 2^59 - 1; WLM_PROBLEM_INIT sets -1, which is refused as not given */
  wlm_operation operation;
  wlm_message message;
  wlm_reduce reduce;
  wlm_empty empty;
  const char *custom;  /* a user-defined operator, where reduce = WLM_CUSTOM; see below */
  wlm_type dense_type; /* of B and C; the accumulator is f32 (f64 for f64) */
  int transpose;       /* op(A) = A^T: B is rows x n and C cols x n; see wlm_plan_create */
  /* H values per edge, each for n / H neighbouring columns: column j takes the value of head j / (n / H). n must be a
   * multiple of H. Without values every head has 1. */
  int64_t heads;
  int want_argmax;       /* also give the position of the edge that wins, of max or min; see wlm_execute_args.argmax */
  wlm_index argmax_type; /* of these positions; WLM_I16 = their lower 16 bits, for rows of at most 65536 edges */
  wlm_epilogue epilogue;
  wlm_sampling sampling;
  wlm_policy policy;
  wlm_score score;            /* of WLM_ATTENTION */
  int dropout;                /* of WLM_ATTENTION: 1 = calls leave out weights at random */
  wlm_order b_order, c_order; /* of the arrays with leading dimension ldb, and of those with ldc */
  int64_t batch;              /* products of a call of WLM_SPMM, WLM_SDDMM or WLM_ARGMAX_GRADIENT */
} wlm_problem;
#define WLM_PROBLEM_INIT                                                                                             \
  {                                                                                                                  \
    sizeof(wlm_problem), -1, WLM_SPMM, WLM_MUL, WLM_SUM, WLM_EMPTY_ZERO, NULL, WLM_F32, 0, 1, 0, WLM_I32, {0, NULL}, \
        {WLM_SAMPLE_NONE, WLM_NORM_NONE, 0}, {0, 1}, WLM_SCORE_GAT, 0, WLM_ROW_MAJOR, WLM_ROW_MAJOR, 1               \
  }

/* ---- one call: what changes from call to call ----------------------------------------------------- */

/* The arguments of wlm_spmm and wlm_plan_execute. Brackets mark what only some problems need; values are optional.
 *   WLM_SPMM                        reads b [bias] [values]    writes c [argmax]
 *   WLM_SDDMM                       reads x, b                 writes dvalues
 *   WLM_ARGMAX_GRADIENT             reads x, argmax [b]        writes argmax_db, argmax_dvalues, or one of them
 *   WLM_ATTENTION                   reads b, *attention [bias, values]     writes c, *attention
 *   WLM_ATTENTION, transpose = 1    reads b, x, *attention [values]        writes db, *attention
 *   WLM_ATTENTION_ROWS              reads b, x, *attention [values]        writes c, *attention
 *   WLM_MESSAGE                     reads and writes *operands [values]
 *
 * Memory is on the device. What a call writes must overlap no other array, which is checked; lines of C may lie between
 * those of B. With transpose rows and cols swap. */
typedef struct wlm_execute_args {
  size_t size;
  const void *b;      /* cols x n of dense_type with leading dimension ldb; may be NULL where the message has no b */
  void *c;            /* rows x n of dense_type with leading dimension ldc */
  const void *x;      /* dC: rows x n of dense_type with leading dimension ldc, only read */
  const void *values; /* instead of wlm_csr.values; NULL = those. Only where A has values (wlm_csr.has_values) */
  /* argmax[i,j] = the position p in colind of the edge that C[i,j] comes from, -1 where row i has no edge: rows x n of
   * argmax_type with leading dimension ldc (best aligned to 16 bytes). Of equal edges the lowest p wins; the first NaN
   * wins over everything. With sampling p is an edge that was used, with transpose a position in the colind of A
   * itself. With WLM_I16, which WLM_SPMM has without transpose, p = rowptr[i] + (uint16_t)(argmax[i,j] - rowptr[i]),
   * and what an empty row has means nothing. alpha, beta, bias and activation apply to C alone. */
  void *argmax;
  /* Of WLM_ARGMAX_GRADIENT: over all i, j with argmax[i,j] = p, an edge of column k,
   *   argmax_db[k,j]    = alpha * sum of x[i,j] * d message(a_p, B[k,j]) / d B[k,j]
   *   argmax_dvalues[p] = alpha * sum of x[i,j] * d message(a_p, B[k,j]) / d a_p
   * argmax_db is cols x n with leading dimension ldb and argmax_dvalues nnz (x heads), both of the accumulator's type
   * (f32, or f64 where dense_type is f64), both overwritten. An epilogue is WLM_ERR_UNSUPPORTED, as x must be the
   * gradient before it; so is policy.deterministic on a GPU, where terms are added atomically in any order. */
  void *argmax_db, *argmax_dvalues;
  /* Of WLM_SDDMM: nnz elements of dense_type in the order of colind, nnz x heads with heads,
   *   dvalues[p] = alpha * sum over j of x[i,j] * d message(a_p, B[k,j]) / d a_p + beta * dvalues[p]
   * For mul that is the product of rows <x[i,:], B[k,:]>; for copy_a, add and rsub the sum of x[i,:]; for sub that sum
   * negated; for div and rdiv -<x[i,:], B[k,:]> / a^2 and the sum of x[i,:] / B[k,:]; for copy_b 0. reduce is sum, or
   * mean, which divides by the edges of the row. With sampling the derivative is multiplied by the norm and by how
   * often the edge is taken; rows of B that are named only by edges which are left out are not read. */
  void *dvalues;
  void *db;           /* of the gradient of attention: cols x n of dense_type with leading dimension ldb */
  double alpha, beta; /* finite; beta = 0 never reads C */
  const void *bias;   /* n values of dense_type, where epilogue.bias is set */
  uint64_t seed;      /* of sampling: 0 = as published, otherwise adds hash(seed, row) mod d. A CUDA graph keeps it */
  int64_t ldb, ldc;   /* in elements; 0 means n, or of a column-major array its rows */
  /* Device memory of wlm_plan_workspace_size bytes, aligned to 16. wlm_spmm ignores it and has its own. */
  void *workspace;
  size_t workspace_size;
  const void *prepared; /* what wlm_plan_prepare filled; NULL = what this plan's last wlm_plan_prepare filled */
  void *stream;
  const wlm_message_args *operands;        /* of WLM_MESSAGE, which reads and writes nothing else but `values` */
  const wlm_attention_operands *attention; /* NULL = one with only its defaults, enough for WLM_SCORE_EDGE */
  int64_t b_stride, c_stride, values_stride, dvalues_stride; /* of a batch, see Batches above */
} wlm_execute_args;
#define WLM_EXECUTE_ARGS_INIT                                                                                         \
  {                                                                                                                   \
    sizeof(wlm_execute_args), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1.0, 0.0, NULL, 0, 0, 0, NULL, 0, \
        NULL, NULL, NULL, NULL, 0, 0, 0, 0                                                                            \
  }

/* Enqueues one product (or SDDMM, attention, or gradient) for a matrix that needs no wlm_matrix.
 *
 * Meant for a matrix that is used once or a few times. The kernel is chosen from rows, cols and nnz alone; where a
 * matrix of this size was tuned, that one's kernel runs. A matrix with more columns than rows is assumed to be a block
 * of a neighbour sampler, whose rows have similar lengths. For other wide matrices with a few long rows use a plan,
 * which measures the rows. Loaded kernels and workspaces stay in the context; nothing that depends on the contents of A
 * is kept, so memory may be reused for another matrix, and the arrays of A may be written by work that was enqueued on
 * the stream before. policy.expected_calls counts as 1. rowptr is not checked. Never synchronises, except with
 * transpose = 1 and no compiler: then A^T is built on the host. Compiles only if no loaded kernel for the problem is
 * expected to take at most 1.1 times the best one's time. Allocates device memory only where the stream's workspace is
 * too small, or was released because more than 32 other streams were used since; in a stream capture the workspace
 * belongs to the graph. With transpose = 1 it scatters sums by atomic adds where policy.deterministic is 0 and that is
 * expected to be quicker, and otherwise builds A^T on the stream. Thread-safe. Errors: as wlm_plan_create and
 * wlm_plan_execute. */
WLM_API wlm_status wlm_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem,
                            const wlm_execute_args *args);

/* ---- matrix: for planned products ------------------------------------------------------------------ */

/* Row statistics of a matrix, from which kernels are chosen. */
typedef struct wlm_stats {
  size_t size;
  int64_t rows, cols, nnz;
  int64_t longest; /* non-zeros of the longest row */
  int64_t empty_rows;
  int64_t rows_le_4; /* rows with at most 4 non-zeros, empty ones included */
  int64_t rows_le_16;
  double mean;      /* nnz / rows, 0 where rows = 0 */
  double cv;        /* standard deviation / mean of the row lengths, 0 where nnz = 0 */
  double top_share; /* share of nnz in the longest 1 % of the rows (at least one row) */
  /* xxh3-128 over rows, cols, nnz, rowptr as int64 and 4,096 evenly spaced colind, all of base 0; high, low. 0, 0 = not
   * computed, and never a match. */
  uint64_t fingerprint[2];
} wlm_stats;
#define WLM_STATS_INIT                                              \
  {                                                                 \
    sizeof(wlm_stats), 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, { 0, 0 } \
  }

/* How the stats of a matrix come about. In each case a plan recognises tuned matrices: if a matrix of this size was
 * tuned for the plan's problem, the plan computes the fingerprint (one copy of rowptr to the host). */
typedef enum wlm_stats_grade {
  WLM_STATS_MEASURED,  /* by a small kernel on the stream and one copy of about 100 bytes; rowptr is checked by it */
  WLM_STATS_ESTIMATED, /* from rows, cols and nnz alone: nothing is read, nothing waits */
  WLM_STATS_GIVEN      /* by the caller; checked against the size and against each other, not against the arrays */
} wlm_stats_grade;

typedef struct wlm_matrix_options {
  size_t size;
  wlm_stats_grade grade;
  const wlm_stats *stats; /* where grade is WLM_STATS_GIVEN */
  void *stream;           /* for all device work of the matrix: measuring, and building A^T */
} wlm_matrix_options;
#define WLM_MATRIX_OPTIONS_INIT \
  { sizeof(wlm_matrix_options), WLM_STATS_MEASURED, NULL, NULL }

/* Binds CSR arrays in device memory. options may be NULL. The arrays stay the caller's and must outlive the matrix;
 * values may change in place at any time. rowptr and colind must be complete when they are bound and never change: on a
 * GPU a product may read them before work that was enqueued earlier has ended. Waits for the stream where stats are
 * measured. Destroy the matrix before its context.
 *
 * With WLM_STATS_ESTIMATED, rowptr and colind may both be NULL: then plans can be made for the size alone, as wlm_spmm
 * chooses them, and each must be bound to arrays (wlm_plan_rebind) before it is executed. Errors:
 * WLM_ERR_INVALID_ARGUMENT, WLM_ERR_OVERFLOW, WLM_ERR_DEVICE, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_matrix_create(wlm_context *context, const wlm_csr *csr, const wlm_matrix_options *options,
                                     wlm_matrix **matrix);
WLM_API void wlm_matrix_destroy(wlm_matrix *matrix);
/* Checks the arrays, for input that you do not trust: rowptr begins with 0, never falls and ends with nnz; each column
 * is within 0 to cols - 1 (1 more each with wlm_csr.base = 1). The device reads both arrays once, on the stream, and
 * the call waits for it. Kernels do not check: with a wrong matrix they read and write memory that is not yours.
 *   row  gets the first row that is wrong, counted from 0, -1 where none is; may be NULL
 * Thread-safe. Errors: WLM_ERR_INVALID_ARGUMENT where a row is wrong, with a text that says what; WLM_ERR_DEVICE,
 * WLM_ERR_OUT_OF_MEMORY, WLM_ERR_COMPILE. */
WLM_API wlm_status wlm_matrix_validate(const wlm_matrix *matrix, void *stream, int64_t *row);
/* What is known so far; lives as long as the matrix. Plan creation and tuning may add to it, so do not read it while
 * another thread plans or tunes for this matrix. */
WLM_API const wlm_stats *wlm_matrix_stats(const wlm_matrix *matrix);

/* ---- plan ------------------------------------------------------------------------------------------- */

/* Chooses a kernel for a problem and a matrix of this context, and compiles or loads it.
 *
 * The first of these that applies decides: a pin, a tuned case of this very matrix (fingerprint), the cost model,
 * similar tuned cases, the built-in rules. They give a ranked list, and the plan gets its first kernel that compiles
 * and loads. Where the cost model decides, policy.deterministic is 0 and there is a kernel archive, a kernel that needs
 * no compiling runs if it is expected to take at most 1.05 times the best one's time. The last entry is the built-in
 * kernel where that serves the problem (sums in f32). Host call; may read the kernel cache and run a compiler. The
 * matrix must outlive the plan. With transpose = 1 the first plan builds A^T, unless policy.expected_calls is 1 and the
 * product is one that wlm_spmm scatters. A^T stays with the matrix: (cols + 1 + nnz) offsets of rowptr's type and nnz
 * indices of colind's. Values are read where they are and may change in place.
 * Errors: WLM_ERR_UNSUPPORTED naming the field, WLM_ERR_INVALID_ARGUMENT, WLM_ERR_NOT_FOUND (no kernel serves the
 * problem on this device), WLM_ERR_NO_COMPILER, WLM_ERR_COMPILE, WLM_ERR_IO (the compiler was stopped),
 * WLM_ERR_OVERFLOW, WLM_ERR_DEVICE, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_plan_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                   wlm_plan **plan);
/* Destroys a plan whose enqueued work has ended. */
WLM_API void wlm_plan_destroy(wlm_plan *plan);
/* Bytes of device memory that a call needs, to be aligned to 16; 0 = none. */
WLM_API size_t wlm_plan_workspace_size(const wlm_plan *plan);
/* Enqueues the plan's product on args->stream. No malloc, sync, lock, getenv, file access or JIT; can be captured in a
 * CUDA graph. One plan may run concurrently with distinct workspaces. A plan whose C has no rows or no columns
 * succeeds without a launch. Errors: WLM_ERR_INVALID_ARGUMENT, WLM_ERR_NOT_READY, WLM_ERR_OVERFLOW, WLM_ERR_DEVICE. */
WLM_API wlm_status wlm_plan_execute(const wlm_plan *plan, const wlm_execute_args *args);

/* Binds another matrix of the same index and value types: new rows, cols, nnz and pointers, for mini-batches.
 *
 * Keeps the kernel, so it takes less than a microsecond. It allocates nothing and does not read the arrays, which may
 * be written by work that is enqueued on the stream before the product. Whether there are values stays as it was. The
 * workspace size may change: ask for it again. Not while the plan is executed. A plan with transpose = 1 that was made
 * for a size alone needs the arrays of A^T in csr. WLM_ERR_UNSUPPORTED, with the reason, for a plan that has prepared
 * memory, which one made with policy.expected_calls = 1 never has, that runs on the A^T of one matrix, or that tunes
 * online. Errors besides: WLM_ERR_INVALID_ARGUMENT, WLM_ERR_OVERFLOW; the plan then stays bound as
 * it was. */
WLM_API wlm_status wlm_plan_rebind(wlm_plan *plan, const wlm_csr *csr);

/* Bytes of device memory for wlm_plan_prepare, to be aligned to 16. Above 0 = the plan must be prepared before it is
 * executed. */
WLM_API size_t wlm_plan_prepared_size(const wlm_plan *plan);
/* Enqueues the work that fills `prepared`. This memory stays the caller's and must outlive the plan's executes. It
 * reads the pattern of A, never its values, so these may change afterwards. No malloc, sync or JIT; executes on other
 * streams must wait for it. Succeeds and does nothing for a plan without a prepared size. Not while the plan is
 * executed. */
WLM_API wlm_status wlm_plan_prepare(wlm_plan *plan, void *prepared, void *stream);

WLM_API const char *wlm_plan_variant(const wlm_plan *plan); /* "row_vec/lanes=8,..."; lives as long as the plan */
/* Why this kernel was chosen: the step that decided, the distance to the tuned case, the grade of the stats, and the
 * next best kernels with the cost of their preparation and the number of calls from which it pays. json = 0 for text.
 * Free with wlm_string_free. */
WLM_API wlm_status wlm_plan_explain(const wlm_plan *plan, int json, char **text);
/* Seconds that one call is expected to take with the kernel that wlm_plan_create would choose, to compare the orders of
 * several products before any is planned. Compiles nothing and builds no A^T: without one, a transposed product is
 * judged by the size of A alone.
 *   seconds    measured on this matrix or a similar one, or predicted by the cost model; 0 where rules alone choose.
 *              As if all arrays were row-major
 *   simple     from the bytes that a product moves and rates of memory, always above 0. It errs by its factor alike for
 *              several n on one matrix, so compare these where one has no expected time. May be NULL.
 * Thread-safe; takes microseconds to a millisecond. Errors: as wlm_plan_create, without those of compiling. */
WLM_API wlm_status wlm_expected_seconds(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                        double *seconds, double *simple);
/* wlm_plan_create with a kernel named by hand, "row_crc/cf=2,rows=4"; it may be one that must be prepared, whatever
 * expected_calls is. WLM_ERR_INVALID_ARGUMENT if it is no candidate. */
WLM_API wlm_status wlm_plan_create_variant(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                           const char *variant, wlm_plan **plan);

/* ---- CSR from a list of edges, or from blocks ------------------------------------------------------------- */

/* The arguments of wlm_csr_from_coo: what it reads, then what it writes. All arrays are in device memory. */
typedef struct wlm_coo {
  size_t size;
  int64_t rows, cols, nnz;
  const void *row, *col; /* nnz row and column indices of index_type, in any order, repeated ones included */
  wlm_index index_type;
  int sorted;   /* 1 = the row indices never fall, which saves the check and the sort */
  void *rowptr; /* rows + 1 of rowptr_type */
  void *colind; /* nnz of colind_type */
  void *perm;   /* nnz of rowptr_type: entry p of the CSR matrix is edge perm[p] of the list; NULL = not wanted */
  wlm_index rowptr_type, colind_type;
  void *stream;
  int64_t base; /* 0 or 1: what row, col, rowptr and colind count from; perm counts from 0 */
} wlm_coo;
#define WLM_COO_INIT \
  { sizeof(wlm_coo), 0, 0, 0, NULL, NULL, WLM_I32, 0, NULL, NULL, NULL, WLM_I32, WLM_I32, NULL, 0 }

/* Enqueues the conversion of an edge list (COO) to the pattern of a CSR matrix.
 *
 * Edges of one row keep their order, and the result is the same every time. The arrays stay yours, must not overlap,
 * and are ready for work that is enqueued on the stream afterwards, such as wlm_spmm. On a GPU a
 * least-significant-digit radix sort (Satish, Harris, Garland: Designing Efficient Sorting Algorithms for Manycore
 * GPUs, IPDPS 2009) sorts the bits that row indices have, eight a round; the device detects edges that are in order
 * already and then only copies. The host device uses a counting sort.
 *
 * An edge with a row or column out of range causes no memory error: it is moved behind the last row, so rowptr[rows] is
 * less than nnz, which wlm_matrix_create refuses (the numbers here are those of base 0). wlm_spmm does not check this.
 * There such an edge takes no part in the product, and WLM_SDDMM counts it as 0; only with transpose = 1 it may count
 * to the last row of A. A column out of range becomes 0 in colind. If `sorted` is set wrongly, or together with such
 * edges, the rows are unspecified. In every case rowptr begins with 0, never falls and ends with at most nnz, and
 * columns are 0 to cols - 1, so that no operation or gradient reads or writes outside of the arrays.
 *
 * A^T of a matrix is the conversion of its edges in CSR order with rows and columns exchanged. As wlm_csr.t_rowptr
 * (cols
 * + 1), t_colind and t_order (nnz, the perm of this conversion), of the types of rowptr, colind and rowptr, transposed
 * products use it: they neither build A^T nor scatter. All three are given or none; values stay in the order of A.
 *
 * Never synchronises, except on a GPU without a compiler, where the host converts. The first call for a pair of types
 * compiles. Memory for sorting comes from the stream's workspace as in wlm_spmm; can be captured in a CUDA graph.
 * Thread-safe. Errors: WLM_ERR_INVALID_ARGUMENT, WLM_ERR_OVERFLOW (a size does not fit its type), WLM_ERR_COMPILE,
 * WLM_ERR_DEVICE, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_csr_from_coo(wlm_context *context, const wlm_coo *coo);

/* The arguments of wlm_csr_from_bsr: block rows (BSR) of dense blocks of block_rows x block_cols elements, and the CSR
 * arrays that it writes, of the same types. All arrays are in device memory. */
typedef struct wlm_bsr {
  size_t size;
  int64_t rows, cols, blocks;     /* of the matrix of blocks: its rows, its columns, and blocks that are there */
  int64_t block_rows, block_cols; /* of a block, 1 or more */
  wlm_order order;                /* of the elements of a block */
  const void *rowptr;             /* rows + 1 offsets of blocks */
  const void *colind;             /* the column of each block in the matrix of blocks */
  const void *values;             /* blocks x the elements of a block; NULL = a pattern */
  wlm_index rowptr_type, colind_type;
  wlm_type value_type;
  int64_t base;    /* 0 or 1: what rowptr, colind, to_rowptr and to_colind count from */
  void *to_rowptr; /* rows x block_rows + 1 */
  void *to_colind; /* one for each element of each block */
  void *to_values; /* the same; NULL with a pattern */
  void *stream;
} wlm_bsr;
#define WLM_BSR_INIT                                                                                                 \
  {                                                                                                                  \
    sizeof(wlm_bsr), 0, 0, 0, 1, 1, WLM_ROW_MAJOR, NULL, NULL, NULL, WLM_I32, WLM_I32, WLM_F32, 0, NULL, NULL, NULL, \
        NULL                                                                                                         \
  }

/* Enqueues the conversion of block rows to CSR. Each element of a block becomes an edge, zeros included; the edges of a
 * row are in the order of its blocks. The arrays must not overlap, and the result is ready for work that is enqueued on
 * the stream afterwards. rowptr and colind are not checked, as those of wlm_spmm are not. Never synchronises, except on
 * a GPU without a compiler, where the host converts. The first call for a pair of types compiles. Thread-safe. Errors:
 * those of wlm_csr_from_coo. */
WLM_API wlm_status wlm_csr_from_bsr(wlm_context *context, const wlm_bsr *bsr);

/* ---- user-defined operators --------------------------------------------------------------------------- */

/* wlm_problem.custom is written as parts, each a C expression:
 *
 *   "message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce;finish=acc/degree"
 *
 *   message  over a and b; where it is absent, wlm_problem.message
 *   init     the accumulator of a row before its first edge, and the result of an empty row
 *   reduce   over acc and x: folds one message, edge after edge in the order of the row
 *   combine  over acc and x: merges two partial results that both began with init, acc the earlier one
 *   finish   over acc and degree (the number of edges used), once for each row that is not empty; absent: acc
 *
 * init must be neutral for combine. combine=reduce says that reduce is right on partial results too. Without combine
 * only kernels that never split a row are candidates. order=any is not an expression: it permits kernels that reorder
 * or interleave the edges of a row.
 *
 * Expressions have numbers, inf, these operands, + - * / ( ) ?: < <= > >= == != && || ! and C's math functions, in the
 * accumulator's type with or without the f of the float form (fmax and fmaxf are the same): fabs fmax fmin fma fmod
 * hypot copysign exp exp2 expm1 log log2 log10 log1p pow sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh erf
 * erfc floor ceil trunc round; abs, max and min mean fabs, fmax and fmin; relu(x) and leaky_relu(x, slope) pass NaN on.
 * There are no integers: 1/2 is 0.5. Anything else is WLM_ERR_INVALID_ARGUMENT with the column. A text is needed only
 * during the call that gets it.
 *
 * The database keeps a normalised text of at most 1,023 characters, so spelling the same operator differently finds the
 * same measurements. */

/* ---- measurements, as JSON lines sorted by content ------------------------------------------------------ */

/* Every measurement, pin and recorded problem of the context's user database. A file is replaced in one step when the
 * new content is on the disk; a pipe or a device is written as it is. WLM_ERR_NOT_FOUND where the context has no
 * database. Free the text with wlm_string_free. */
WLM_API wlm_status wlm_export_path(wlm_context *context, const char *path);
WLM_API wlm_status wlm_export_string(wlm_context *context, char **text);
/* All or nothing; a bad line, also one with a NUL byte in a file, is WLM_ERR_PARSE with its number. `text` ends at its
 * first NUL: a caller who has a length must refuse text with one inside. A pin that contradicts an existing one is left
 * out and logged. *added (may be NULL) becomes the number of measurements that the database did not have. The context
 * is refreshed. WLM_ERR_NOT_FOUND where the context has no user database. */
WLM_API wlm_status wlm_import_path(wlm_context *context, const char *path, int64_t *added);
WLM_API wlm_status wlm_import_string(wlm_context *context, const char *text, int64_t *added);

/* ---- log, memory, version: process-wide; set before the first context ----------------------------------- */

typedef enum wlm_log_level { WLM_LOG_ERROR, WLM_LOG_WARNING, WLM_LOG_INFO, WLM_LOG_DEBUG } wlm_log_level;
typedef void (*wlm_log_fn)(void *user, wlm_log_level level, const char *message);
/* NULL silences the library, which is the default. May be called from several threads at once. */
WLM_API void wlm_set_log(wlm_log_fn fn, void *user, wlm_log_level max_level);

typedef struct wlm_allocator {
  void *(*allocate)(void *user, size_t size);
  void *(*reallocate)(void *user, void *old, size_t size);
  void (*release)(void *user, void *old);
  void *user;
} wlm_allocator;
/* Host memory of the library; NULL restores malloc. Not while any warploom object exists. */
WLM_API void wlm_set_allocator(const wlm_allocator *allocator);

struct wlm_device_allocator {
  /* At least `size` bytes on GPU `device`, aligned to 256, usable by work that is enqueued on the stream from now on;
   * NULL where there is no room. */
  void *(*allocate)(void *user, int device, size_t size, void *stream);
  /* The memory may be used again by work that is enqueued on the stream from now on. */
  void (*release)(void *user, int device, void *memory, size_t size, void *stream);
  void *user;
};
/* Device memory of contexts without an allocator of their own (wlm_context_options.device_allocator), such as a
 * framework's caching allocator; NULL restores the driver's. Not while any warploom object exists. The host device does
 * not use it: its "device memory" comes from posix_memalign. */
WLM_API void wlm_set_device_allocator(const wlm_device_allocator *allocator);

WLM_API void wlm_string_free(char *string);
WLM_API int wlm_version(void);                /* major * 10000 + minor * 100 + patch */
WLM_API const char *wlm_version_string(void); /* "0.3.0" */

/* What the INIT macros do, for callers without macros: fills the first `size` bytes of the struct, which include its
 * field `size`. */
WLM_API wlm_status wlm_context_options_init(void *options, size_t size);
WLM_API wlm_status wlm_csr_init(void *csr, size_t size);
WLM_API wlm_status wlm_coo_init(void *coo, size_t size);
WLM_API wlm_status wlm_bsr_init(void *bsr, size_t size);
WLM_API wlm_status wlm_problem_init(void *problem, size_t size);
WLM_API wlm_status wlm_execute_args_init(void *args, size_t size);
WLM_API wlm_status wlm_matrix_options_init(void *options, size_t size);
WLM_API wlm_status wlm_stats_init(void *stats, size_t size);

#ifdef __cplusplus
}
#endif
#endif
