/* warploom: autotuned sparse-dense matrix multiplication, C = reduce_p(message(A[i,p], B[p,:])).
 *
 * Ownership in one sentence: what a wlm_*_create or wlm_*_open call gives you, you give back to the
 * matching _destroy or _close; every pointer that you pass in stays yours and must outlive the object
 * that was given it; strings returned through char ** are released with wlm_string_free.
 *
 * Shapes: A is rows x cols sparse in CSR (0-based; columns of a row may be unsorted and repeated),
 * B is cols x n dense row-major with leading dimension ldb >= n, C is rows x n with ldc >= n.
 * Sizes and offsets are int64_t. Device pointers and CUDA streams are void *, so this header needs
 * no CUDA header. On the host device "device pointer" means an ordinary pointer and the stream is ignored.
 *
 * On a GPU work runs in the device's primary context, as that of the CUDA runtime and of PyTorch does, so their
 * pointers and streams are good here as they are; a stream that is NULL is the legacy default stream. A context is for
 * one GPU: several are used by a context, and matrices and plans, for each ("cuda:0", "cuda:1"), from any thread.
 *
 * An address that is no multiple of its elements' size is refused with WLM_ERR_INVALID_ARGUMENT.
 *
 * Errors: every fallible call returns a wlm_status. wlm_error_detail() tells the calling thread what
 * went wrong in its last failed call. The library never exits, aborts or prints (it logs, see wlm_set_log).
 *
 * Option structs begin with `size`: initialise them with their WLM_*_INIT macro. A struct of another version's header
 * is refused with WLM_ERR_INVALID_ARGUMENT, never misread. Fields that are not built yet, or have no meaning together,
 * are answered with WLM_ERR_UNSUPPORTED and a detail text that names the field and what to do instead.
 */
#ifndef WARPLOOM_WARPLOOM_H
#define WARPLOOM_WARPLOOM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WLM_VERSION_MAJOR 0
#define WLM_VERSION_MINOR 1
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

WLM_API int wlm_version(void);                             /* major * 10000 + minor * 100 + patch */
WLM_API const char *wlm_version_string(void);              /* "0.1.0" */
WLM_API const char *wlm_status_name(wlm_status status);    /* "WLM_ERR_IO"; static */
WLM_API const char *wlm_status_message(wlm_status status); /* "input or output failed"; static */
/* Detail of this thread's last failed call, "" if none; valid until the thread's next warploom call. */
WLM_API const char *wlm_error_detail(void);
WLM_API void wlm_string_free(char *string);

/* ---- log and memory (process-wide; set before the first context) --------------------------- */

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

typedef struct wlm_device_allocator {
  /* At least `size` bytes on GPU `device`, aligned to 256, usable by work that is enqueued on the stream from now on;
   * NULL where there is no room. */
  void *(*allocate)(void *user, int device, size_t size, void *stream);
  /* The memory may be used again by work that is enqueued on the stream from now on. */
  void (*release)(void *user, int device, void *memory, size_t size, void *stream);
  void *user;
} wlm_device_allocator;
/* Device memory of the library, such as a framework's caching allocator; NULL restores the driver's. Not while any
 * warploom object exists. The host device uses wlm_set_allocator's. */
WLM_API void wlm_set_device_allocator(const wlm_device_allocator *allocator);

/* ---- the problem ---------------------------------------------------------------------------- */

typedef enum wlm_type { WLM_F32, WLM_F16, WLM_BF16, WLM_F64 } wlm_type;
typedef enum wlm_index { WLM_I32, WLM_I64 } wlm_index;

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

/* mean divides by the number of edges used; max and min propagate NaN, and with positions may give +0 for -0. */
typedef enum wlm_reduce { WLM_SUM, WLM_MEAN, WLM_MAX, WLM_MIN, WLM_PROD, WLM_CUSTOM } wlm_reduce;

/* What an empty row gives before the epilogue; of a user-defined operator its init in either case. */
typedef enum wlm_empty {
  WLM_EMPTY_ZERO,    /* 0 for sum, mean, max, min; 1 for prod */
  WLM_EMPTY_IDENTITY /* the identity of the reduction: -inf for max, +inf for min */
} wlm_empty;

/* ES-SpMM edge sampling. kept = min(width, d) edges of a row with d: all of them, in order, where d <= width. */
typedef enum wlm_sample {
  WLM_SAMPLE_NONE,
  WLM_SAMPLE_BUCKET,          /* edge start + k */
  WLM_SAMPLE_FASTRAND,        /* edge start + (577 k mod d), as published */
  WLM_SAMPLE_FASTRAND_COPRIME /* the stride is the next one coprime with d */
} wlm_sample;
/* Of a sum. A mean divides by the edges that are kept as it is. */
typedef enum wlm_sample_norm {
  WLM_NORM_NONE,
  WLM_NORM_KEPT,    /* divide by kept */
  WLM_NORM_UNBIASED /* multiply by d / kept */
} wlm_sample_norm;

/* What a plan computes: the product, or what is its gradient with respect to the values of A. */
typedef enum wlm_operation {
  WLM_SPMM, /* C = reduce_p(message(A[i,p], B[p,:])) */
  WLM_SDDMM /* for each edge p = (i, k) of A: dvalues[p] = sum over j of dC[i,j] * d message(a_p, B[k,j]) / d a_p; see
             * wlm_plan_execute_sddmm */
} wlm_operation;

typedef struct wlm_problem {
  size_t size;
  int64_t n;        /* columns of B and C, >= 0 */
  int64_t ldb, ldc; /* in elements; 0 means n */
  wlm_message message;
  wlm_reduce reduce;
  wlm_empty empty;
  wlm_type dense_type; /* of B and C; the accumulator is f32 (f64 for f64) */
  double alpha, beta;  /* C = activation(alpha * result + beta * C + bias); beta = 0 never reads C */
  int transpose;       /* op(A) = A^T: B is rows x n and C cols x n; see wlm_plan_create */
  /* H values per edge, each for n / H neighbouring columns: column j takes the value of head j / (n / H). 1 = one
   * scalar an edge. n must be a multiple of it. Without values every head has 1. */
  int64_t heads;
  int64_t batch;     /* problems in one call */
  int want_arg;      /* also give the winning position of max or min; see wlm_plan_execute_arg */
  wlm_sample sample; /* part of the problem, never tuned behind the caller's back */
  wlm_sample_norm sample_norm;
  int64_t sample_width; /* S, 8..2304 */
  uint64_t seed;        /* sampling: 0 as published, otherwise adds hash(seed, row) mod d; see wlm_plan_execute_seed */
  int deterministic;    /* only candidates that give the same bits every time */
  /* How often a plan will be executed, as far as the caller knows; 1 = no reuse, and then no plan needs preparing. From
   * 2 on the choice is the kernel with the least time + preparing / expected_calls; never part of what is tuned. */
  int64_t expected_calls;
  const char *custom; /* a user-defined operator, where reduce = WLM_CUSTOM; see below */
  const void *bias;   /* epilogue: n values of C's type, in device memory, added to every row; NULL = none */
  const char
      *activation; /* epilogue: an expression over x, "relu", "leaky_relu(x,0.2)", "x/(1+exp(-x))"; NULL = none */
  wlm_operation operation;
  wlm_index arg_type; /* of the positions, where want_arg */
} wlm_problem;
#define WLM_PROBLEM_INIT                                                                                            \
  {                                                                                                                 \
    sizeof(wlm_problem), 0, 0, 0, WLM_MUL, WLM_SUM, WLM_EMPTY_ZERO, WLM_F32, 1.0, 0.0, 0, 1, 1, 0, WLM_SAMPLE_NONE, \
        WLM_NORM_NONE, 0, 0, 0, 1, NULL, NULL, NULL, WLM_SPMM, WLM_I32                                              \
  }

/* A user-defined operator is written as parts, each a C expression:
 *
 *   "message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce;finish=acc/degree"
 *
 *   message  over a and b; where it is absent, wlm_problem.message
 *   init     the accumulator of a row before its first edge, and the result of an empty row
 *   reduce   over acc and x: folds one message, edge after edge in the order of the row
 *   combine  over acc and x: merges two partial results that both began with init, acc the earlier one, so init must be
 *            neutral for it. combine=reduce says that reduce is right on partial results too. Without combine only
 *            kernels that never split a row are candidates.
 *   finish   over acc and degree (the number of edges used), once for each row that is not empty; absent: acc
 *
 * order=any is no expression: it says that edges may be folded in any order, for kernels that reorder or interleave
 * them.
 *
 * Expressions have numbers, inf, these operands, + - * / ( ) ?: < <= > >= == != && || ! and C's math functions, in the
 * accumulator's type with or without the f of the float form (fmax and fmaxf are the same): fabs fmax fmin fma fmod
 * hypot copysign exp exp2 expm1 log log2 log10 log1p pow sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh erf
 * erfc floor ceil trunc round; abs, max and min mean fabs, fmax and fmin; relu(x) and leaky_relu(x, slope) pass NaN on.
 * 1/2 is a half, for there are no integers. Anything else is WLM_ERR_INVALID_ARGUMENT with the column. Texts are needed
 * only during the call they are given to.
 *
 * How an operator is written does not matter to the store: it keeps the normalised text, which has at most 511
 * characters. */

/* ---- context: a device, what was learned on it, compilers and the kernel cache ---------------- */

typedef struct wlm_context wlm_context;
typedef struct wlm_matrix wlm_matrix;
typedef struct wlm_plan wlm_plan;

typedef struct wlm_context_options {
  size_t size;
  const char *device;          /* "host", "cuda:0"; NULL = the first GPU, or the host where there is none */
  const char *database;        /* user database; NULL = $XDG_DATA_HOME/warploom/tuned.db; "" = none */
  const char *system_database; /* read-only, shipped beside the library; NULL = the shipped one; "" = none */
  const char *kernel_cache;    /* NULL = $XDG_CACHE_HOME/warploom/kernels.db; "" = none */
  const char *templates; /* folder to read instead of the embedded templates; NULL = $WARPLOOM_TEMPLATES or embedded */
  /* Notes in memory what plans are made for where nothing near was tuned, up to 4,096 problems with the statistics of
   * their matrices, and writes them to the user database when the context is destroyed or a learner of its is closed;
   * `warploom tune --recorded` tunes them, on matrices that are made after the statistics. What cannot be written is
   * logged. */
  int record;
} wlm_context_options;
#define WLM_CONTEXT_OPTIONS_INIT \
  { sizeof(wlm_context_options), NULL, NULL, NULL, NULL, NULL, 0 }

/* Opens a device and loads what was learned on it into an immutable snapshot. A missing or broken
 * database, cache or compiler degrades to the next step and is logged; the context still opens.
 * Errors: WLM_ERR_NO_DEVICE, WLM_ERR_INVALID_ARGUMENT, WLM_ERR_TEMPLATE, WLM_ERR_OUT_OF_MEMORY. Thread-safe. */
WLM_API wlm_status wlm_context_create(const wlm_context_options *options, wlm_context **context);
WLM_API void wlm_context_destroy(wlm_context *context);
WLM_API const char *wlm_context_device_name(const wlm_context *context); /* lives as long as the context */
/* "host" or "cuda": what pointers and streams mean here. */
WLM_API const char *wlm_context_device_kind(const wlm_context *context);
/* Reloads the snapshot, for a process that wants what others tuned meanwhile. Thread-safe: a plan that is being created
 * sees what was there before or what is there after. */
WLM_API wlm_status wlm_context_refresh(wlm_context *context);

/* ---- matrix ---------------------------------------------------------------------------------- */

typedef struct wlm_csr {
  size_t size;
  int64_t rows, cols, nnz;
  const void *rowptr; /* rows + 1, of rowptr_type, in device memory */
  const void *colind; /* nnz, of colind_type */
  const void *values; /* nnz of value_type, nnz x heads row-major where a problem has heads; NULL = every edge is 1 */
  wlm_index rowptr_type, colind_type;
  wlm_type value_type; /* as the dense type of the problems, or f32 where that is f16 or bf16 */
} wlm_csr;
#define WLM_CSR_INIT \
  { sizeof(wlm_csr), 0, 0, 0, NULL, NULL, NULL, WLM_I32, WLM_I32, WLM_F32 }

/* What is known of a matrix from rowptr. */
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
  uint64_t
      fingerprint[2]; /* xxh3-128 over rows, cols, nnz, rowptr as int64 and 4,096 evenly spaced colind; high, low */
} wlm_stats;
#define WLM_STATS_INIT                                              \
  {                                                                 \
    sizeof(wlm_stats), 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, { 0, 0 } \
  }

/* Binds CSR arrays in device memory. Blocking: reads rowptr once to make the stats, unless the caller
 * gives them (stats may be NULL). The arrays stay the caller's and must outlive the matrix; values may
 * change in place at any time. rowptr and colind are complete when they are bound and never change: on a GPU a product
 * may read them before work that was enqueued earlier has ended. The matrix must be destroyed before its context.
 * rowptr is checked (starts at 0, ends at nnz, never falls) unless stats are given. Errors: WLM_ERR_INVALID_ARGUMENT,
 * WLM_ERR_OVERFLOW, WLM_ERR_DEVICE, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_matrix_create(wlm_context *context, const wlm_csr *csr, const wlm_stats *stats,
                                     wlm_matrix **matrix);
WLM_API void wlm_matrix_destroy(wlm_matrix *matrix);
WLM_API const wlm_stats *wlm_matrix_stats(const wlm_matrix *matrix);

/* ---- plan ------------------------------------------------------------------------------------ */

/* Chooses a kernel (a pin, the exact fingerprint, a learned model or tuned neighbours, a built-in rule), compiles or
 * loads it.
 * Host call; may read the kernel cache and run a compiler. The matrix must outlive the plan.
 * The first plan of a matrix with transpose = 1 makes A^T by column, which stays with the matrix until that is
 * destroyed: memory of the library on the device, (cols + 1 + nnz) offsets of rowptr's type and nnz indices of
 * colind's. This blocks until it is done; explain tells how long it took. Values are not copied: kernels read them
 * where they are, so they may change in place as ever. The pattern may not. Not with sampling, which keeps other edges
 * of A^T. Errors: WLM_ERR_UNSUPPORTED naming the field, WLM_ERR_NO_COMPILER, WLM_ERR_COMPILE, WLM_ERR_INVALID_ARGUMENT,
 * WLM_ERR_NOT_FOUND (neither tuned nor covered by a rule on this device), WLM_ERR_OVERFLOW. */
WLM_API wlm_status wlm_plan_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                   wlm_plan **plan);
/* The same with a kernel named by hand, "row_crc/cf=2,rows=4"; it may be one that must be prepared, whatever
 * expected_calls is. WLM_ERR_INVALID_ARGUMENT if it is no candidate. */
WLM_API wlm_status wlm_plan_create_variant(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                           const char *variant, wlm_plan **plan);
WLM_API void wlm_plan_destroy(wlm_plan *plan);
WLM_API const char *wlm_plan_variant(const wlm_plan *plan);
/* Bytes of device memory, to be aligned to 16 bytes at least. 0 = pass NULL. A prepared size above 0 says that the
 * plan must be prepared before it is executed. */
WLM_API size_t wlm_plan_prepared_size(const wlm_plan *plan);
WLM_API size_t wlm_plan_workspace_size(const wlm_plan *plan);
/* Enqueues on the stream what fills `prepared`, which stays the caller's and must outlive the plan's executes. It reads
 * the pattern of A, never its values, so these may change afterwards. No malloc, sync or JIT; executes on other streams
 * must wait for it. Success and nothing to do for a plan without a prepared size. Not while the plan is executed. */
WLM_API wlm_status wlm_plan_prepare(wlm_plan *plan, void *prepared, void *stream);
/* Enqueues C = alpha * op(A, B) + beta * C on the stream. No malloc, sync, getenv, file access or JIT;
 * can be captured in a CUDA graph; one plan may run concurrently with distinct workspaces.
 * A plan with no rows or no columns is success without a launch. b may be NULL where the message leaves B out.
 * Errors: WLM_ERR_INVALID_ARGUMENT, WLM_ERR_NOT_READY, WLM_ERR_DEVICE. */
WLM_API wlm_status wlm_plan_execute(const wlm_plan *plan, const void *b, void *c, void *workspace, void *stream);
/* The same for a plan with want_arg, for which wlm_plan_execute is an error; reduce is max or min. Beside C goes
 *
 *   arg[i,j] = the position p in colind of the edge that C[i,j] comes from, -1 where row i has no edge
 *
 * into arg, rows x n of arg_type with leading dimension ldc, as C has (best aligned to 16 bytes). Where edges are equal
 * the lowest p wins; the first NaN wins over everything. With sampling p is an edge that was used, with transpose a
 * position in the colind of A itself. alpha, beta, bias and activation are of C alone. arg_type = WLM_I32 with more
 * than 2^31 - 1 non-zeros is WLM_ERR_OVERFLOW when the plan is made. */
WLM_API wlm_status wlm_plan_execute_arg(const wlm_plan *plan, const void *b, void *c, void *arg, void *workspace,
                                        void *stream);
/* Both of a plan with sampling, whose sample is that of `seed` instead of wlm_problem.seed: another one for every step
 * of a training, of one plan. arg as above, not looked at without want_arg. A CUDA graph keeps the seed that it was
 * captured with. WLM_ERR_INVALID_ARGUMENT for a plan without sampling. */
WLM_API wlm_status wlm_plan_execute_seed(const wlm_plan *plan, const void *b, void *c, void *arg, uint64_t seed,
                                         void *workspace, void *stream);
/* The gradients of a plan with want_arg, by the positions that it gave: over all i, j with arg[i,j] = p, an edge of
 * column k,
 *
 *   dB[k,j]    = alpha * sum of dC[i,j] * d message(a_p, B[k,j]) / d B[k,j]
 *   dvalues[p] = alpha * sum of dC[i,j] * d message(a_p, B[k,j]) / d a_p
 *
 *   dc       rows x n of dense_type with leading dimension ldc, only read; so are arg and b, as they were forward;
 *            b may be NULL for copy_a, copy_b, add, sub and rsub
 *   db       cols x n with leading dimension ldb, or NULL; of the accumulator's type: f32, f64 where dense_type is f64
 *   dvalues  nnz elements of that type in the order of colind, nnz x heads with heads, or NULL
 *
 * (rows and cols of op(A)). Both are overwritten. The work is that of reading dC and arg and clearing what is written.
 * On a GPU terms are added atomically, in any order, so a plan with deterministic = 1 answers WLM_ERR_UNSUPPORTED
 * there; so does every plan with an activation, since dC must be what it is before it. Can be captured, like execute.
 */
WLM_API wlm_status wlm_plan_execute_arg_backward(const wlm_plan *plan, const void *dc, const void *arg, const void *b,
                                                 void *db, void *dvalues, void *stream);
/* The same for a plan with operation = WLM_SDDMM, for which wlm_plan_execute is an error: enqueues
 *
 *   dvalues[p] = alpha * sum over j of dC[i,j] * d message(a_p, B[k,j]) / d a_p + beta * dvalues[p]
 *
 * for every edge p, from row i to column k. For mul that is the product of rows <dC[i,:], B[k,:]>; for copy_a, add and
 * rsub the sum of dC[i,:]; for sub that sum negated; for div and rdiv -<dC[i,:], B[k,:]> / a^2 and the sum of dC[i,:] /
 * B[k,:]; for copy_b 0. reduce is sum, or mean, which divides by the edges of the row.
 *
 *   dc       rows x n with leading dimension ldc, only read
 *   b        cols x n with leading dimension ldb; not read where the gradient has no b, and may be NULL then
 *   dvalues  nnz elements of dense_type, in the order of colind
 *
 * With heads dvalues are nnz x heads, and dvalues[p, h] is made of the columns of head h alone. */
WLM_API wlm_status wlm_plan_execute_sddmm(const wlm_plan *plan, const void *dc, const void *b, void *dvalues,
                                          void *workspace, void *stream);
/* Why this kernel: the step that decided, the distance, the runners-up with what their preparing costs and from how
 * many calls it pays, and whether the plan has been prepared. json = 0 for text. Free with wlm_string_free. */
WLM_API wlm_status wlm_plan_explain(const wlm_plan *plan, int json, char **text);

/* One call for one product without positions: matrix, plan and workspace are made and released inside; expected_calls
 * counts as 1.
 * Blocking. */
WLM_API wlm_status wlm_spmm(wlm_context *context, const wlm_csr *csr, const wlm_problem *problem, const void *b,
                            void *c, void *stream);

/* ---- tuning: always an explicit act ------------------------------------------------------------ */

typedef struct wlm_candidate_result {
  const char *variant;
  int failed; /* then `reason` says why, and the times are 0 */
  const char *reason;
  double seconds; /* median of the samples, one call */
  double spread;  /* (third quartile - first) / median */
  /* In 1e9 a second, the bytes that are read and written where no cache holds any of B: of an edge its colind, its
   * values and a row of B, of a row its rowptr and its row of C. */
  double gather_gbs;
  double max_rel_err;     /* against float64, relative to sum |a b| */
  double prepare_seconds; /* of preparing its plan once; 0 = it needs none */
  int samples;            /* 1 at a first look; more where it was among the best and timed again */
  double cold_seconds;    /* one call that finds nothing in cache; 0 = not measured */
} wlm_candidate_result;

typedef struct wlm_tune_options {
  size_t size;
  const char *matrix_name;   /* kept with the measurements; NULL = unnamed */
  double budget_seconds;     /* 0 = all candidates; otherwise those that a near model takes for slow are left out where
                              * they would not fit */
  double min_sample_seconds; /* a sample of the finals repeats the call until it lasts this long */
  int samples;               /* of the finals; 3 at least */
  uint64_t seed;             /* order of those candidates of which nothing is expected; operands */
  /* After each candidate, once it is stored, and with last = NULL some times a second while kernels are being compiled;
   * the finalists are told again in the end. Return non-zero to stop, what was measured is kept. May be NULL. */
  int (*progress)(void *user, int64_t done, int64_t total, const wlm_candidate_result *last);
  void *user;
  int again; /* measure also what the database has, kernels whose text has not changed */
} wlm_tune_options;
#define WLM_TUNE_OPTIONS_INIT \
  { sizeof(wlm_tune_options), NULL, 0.0, 0.001, 9, 1, NULL, NULL, 0 }

/* Looks at every valid candidate for the problem on this matrix that the database does not have yet, times the best of
 * all again, checks results against float64 and stores every measurement in the user database; then refreshes the
 * context. The winner is always one that was timed again.
 * Blocking; uses device memory for B and C. A candidate that fails is recorded as such and is no error.
 * Errors: WLM_ERR_CANCELLED (progress said so), WLM_ERR_UNSUPPORTED, WLM_ERR_INVALID_ARGUMENT, WLM_ERR_DATABASE,
 * WLM_ERR_DEVICE, WLM_ERR_NO_COMPILER. */
WLM_API wlm_status wlm_tune(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                            const wlm_tune_options *options);

/* Learns from all that the user database holds for this class of devices how long a kernel takes on a matrix that was
 * never tuned, keeps that in the database and refreshes the context. Takes a second or so; worth it once many matrices
 * were tuned, and after an import. With fewer than 8 matrices it does nothing, which is no error.
 * Errors: WLM_ERR_INVALID_ARGUMENT (no user database), WLM_ERR_DATABASE, WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY. */
WLM_API wlm_status wlm_train(wlm_context *context);

/* ---- learning from real calls: off unless asked for -------------------------------------------- */

/* A product that gets better while it is used: a plan, and beside it a few others that could be quicker, which are
 * tried on some of the calls. Results are those of wlm_plan_execute; each that is tried was checked against float64. */
typedef struct wlm_learner wlm_learner;

typedef struct wlm_learner_options {
  size_t size;
  double share;      /* of the calls that may run another kernel, above 0 to 0.5 */
  double slowdown;   /* bound: what such calls lose stays below this share of the time of all calls; one that takes
                      * longer than was expected is paid off before anything is tried again */
  double abandon;    /* a kernel that takes so many times the present one's time is given up, above 1 */
  int challengers;   /* how many others are tried at most, 0 to 8, the chooser's runners-up first */
  const char *first; /* the kernel to begin with; NULL = the one that wlm_plan_create chooses */
  const char *matrix_name; /* kept with the measurements; NULL = unnamed */
} wlm_learner_options;
#define WLM_LEARNER_OPTIONS_INIT \
  { sizeof(wlm_learner_options), 1.0 / 16, 0.02, 2.0, 4, NULL, NULL }

/* Chooses, compiles, prepares and checks all kernels that will be tried; nothing is compiled or allocated later.
 * Blocking. Each has its own workspace and prepared memory, which the learner owns; while it is made there is one B and
 * one C more. Where there is no room for these, or no compiler, the learner is the plan alone. Which kernels there are
 * is up to the problem: sampling and types stay what they are, with expected_calls = 1 none that must be prepared is
 * tried, and with deterministic = 1 only those whose result has the same bits as the first one's. options may be NULL.
 * The matrix and the context must outlive the learner. Errors: as wlm_plan_create, and WLM_ERR_MISMATCH. */
WLM_API wlm_status wlm_learner_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                      const wlm_learner_options *options, wlm_learner **learner);
/* As wlm_plan_execute, wlm_plan_execute_arg and wlm_plan_execute_sddmm, with whichever kernel it is the turn of: no
 * malloc, sync, file access or JIT, and on a GPU times are asked for in a later call. In a stream that is being
 * captured the present kernel is enqueued and nothing is tried; such a graph uses the learner's memory, so the learner
 * must outlive it. A learner is for one thread at a time, and for calls of which each one waits for those before: one
 * stream. */
WLM_API wlm_status wlm_learner_execute(wlm_learner *learner, const void *b, void *c, void *stream);
WLM_API wlm_status wlm_learner_execute_arg(wlm_learner *learner, const void *b, void *c, void *arg, void *stream);
WLM_API wlm_status wlm_learner_execute_sddmm(wlm_learner *learner, const void *dc, const void *b, void *dvalues,
                                             void *stream);
/* Stores what was decided, and what the context has noted, in the user database, where there is one: times as
 * measurements with the clock "online", which count as a first look: they choose for this matrix until it is tuned.
 * Then refreshes the context. Blocking; later executes run the present kernel and learn nothing. A second close does
 * nothing. Errors: WLM_ERR_DATABASE, WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY; the learner is closed all the same. */
WLM_API wlm_status wlm_learner_close(wlm_learner *learner);
/* Closes a learner that was not closed, logging what went wrong, waits for the device and releases all memory. */
WLM_API void wlm_learner_destroy(wlm_learner *learner);

typedef struct wlm_learner_state {
  size_t size;
  const char *variant; /* the present kernel; lives as long as the learner */
  int64_t calls, trials, replacements;
  int challengers;               /* that could be set up */
  int settled;                   /* nothing is left to be tried */
  double first_seconds, seconds; /* medians of one call: of the first kernel at the beginning, of the present one;
                                  * 0 = not known yet */
  double lost_seconds;           /* by trials */
} wlm_learner_state;
#define WLM_LEARNER_STATE_INIT \
  { sizeof(wlm_learner_state), NULL, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0 }
WLM_API wlm_status wlm_learner_tell(const wlm_learner *learner, wlm_learner_state *state);

/* ---- what was learned, as JSON lines sorted by content ------------------------------------------ */

/* Every measurement, pin and recorded problem of the context's user database. */
WLM_API wlm_status wlm_export_path(wlm_context *context, const char *path);
WLM_API wlm_status wlm_export_file(wlm_context *context, FILE *file);
WLM_API wlm_status wlm_export_string(wlm_context *context, char **text);
/* All or nothing; a bad line is WLM_ERR_PARSE with its number. A pin for what is pinned to another variant already is
 * left out and logged. The context is refreshed. */
WLM_API wlm_status wlm_import_path(wlm_context *context, const char *path);
WLM_API wlm_status wlm_import_file(wlm_context *context, FILE *file);
WLM_API wlm_status wlm_import_string(wlm_context *context, const char *text);

#ifdef __cplusplus
}
#endif
#endif
