/* A plan: a problem bound to a matrix and to loaded code. Everything that execute needs is computed in advance.
 *
 * It consists of a shape, which is valid for any matrix of its types, and of values for one matrix (`bound`). Binding
 * is arithmetic: it allocates nothing, takes no lock and handles no text. */
#pragma once

#include <stdatomic.h>

#include "core/problem/operation.h"
#include "runtime/dispatch/device.h"
#include "select/select.h"

enum { WLMI_MOST_COPIES = 4 };

/* Kernels of a program, whose source is NULL. */
typedef struct wlmi_loaded {
  wlmi_program program;
  void *kernels[WLMI_MAX_PASSES];
  atomic_int *users; /* how many use them, the caller included; NULL = they stay loaded as long as the context */
} wlmi_loaded;

/* A copy by rows of a column-major array, in the workspace (runtime/dispatch/layout.h). */
typedef struct wlmi_copy {
  int array; /* of the table */
  size_t offset;
  int64_t lines, ld;
  wlmi_launch launch; /* without its kernel */
} wlmi_copy;
typedef struct wlmi_layout {
  int has_steps;        /* the kernels take struct wlm_steps */
  int b_stays, c_stays; /* column-major arrays that they take where these are, by their leading dimension */
  int count;
  wlmi_copy copies[WLMI_MOST_COPIES];
  size_t size; /* of the workspace with them */
} wlmi_layout;

/* A loaded program and the types of its problem. */
typedef struct wlmi_shape {
  wlmi_device *device;
  wlm_operation operation;
  int64_t n, heads, sample_width;
  wlm_index rowptr_type, colind_type, argmax_type;
  wlm_type value_type;
  int base; /* of rowptr and colind */
  int has_values, has_bias, has_dropout, is_attention;
  int is_transposed; /* rows and columns of the kernels' arguments are those of A^T */
  int64_t batch;     /* products of a call */
  wlmi_arrays arrays;
  wlmi_loaded loaded;
  wlmi_loaded layout; /* the kernels that copy column-major arrays, where there are some */
} wlmi_shape;

/* Whether kernels get the rows and columns of A^T, but its other arrays as those of A. */
static inline int wlmi_is_turned(const wlmi_shape *shape) {
  return shape->is_transposed && shape->loaded.program.walks_a;
}

/* The values for one matrix. */
typedef struct wlmi_bound {
  struct wlm_args args; /* complete except for the arguments of each call */
  int empty;            /* the main result has no elements: nothing to do */
  wlmi_launch launches[WLMI_MAX_PASSES];
  wlmi_layout layout;
  int64_t together; /* products of a launch; 1 without a batch */
  size_t workspace_size, prepared_size;
} wlmi_bound;

/* How a plan runs if it delegates to other plans, as online tuning does. */
typedef struct wlmi_plan_mode {
  wlm_status (*execute)(const wlm_plan *plan, const wlm_execute_args *args);
  void (*destroy)(wlm_plan *plan); /* releases what mode_data owns, not the plan */
  const wlm_plan *(*current)(const wlm_plan *plan);
} wlmi_plan_mode;

/* Why the plan has its kernel, for explain. */
typedef struct wlmi_plan_reason {
  wlmi_decision decision;
  wlm_stats stats;
  int estimated; /* the stats were estimated from rows, cols and nnz */
  char problem_key[WLMI_SPEC_KEY];
  double transpose_seconds; /* time of building A^T; 0 if the plan is for A */
  size_t transpose_bytes;
} wlmi_plan_reason;

struct wlm_plan {
  wlmi_device *device;
  const wlmi_plan_mode *mode; /* NULL = the plan runs itself */
  void *mode_data;
  struct wlmi_upgrade *upgrade; /* the kernel that replaces this one once it is compiled; NULL = none */
  const struct wlm_plan *(*upgraded)(const struct wlm_plan *plan); /* NULL until then */
  wlmi_shape shape;
  wlmi_bound bound;
  int is_prepared;
  const char *no_rebind; /* why the plan cannot be bound to another matrix; NULL = it can */
  wlmi_plan_reason reason;
};

/* For a copy of a plan: it uses the kernels, too, and later does no longer. */
void wlmi_plan_keep_kernels(wlm_plan *plan);
void wlmi_plan_drop_kernels(wlm_plan *plan);

/* Computes launches and sizes for a matrix of the shape's types: op(A), or A itself if the shape walks A. a_rowptr is
 * that of A itself, and `order` as in wlm_args. With `fresh`, work that is enqueued before the product may still write
 * rowptr and colind, so the kernels wait for it before they read them. WLM_ERR_OVERFLOW if the grid or a size exceeds
 * the device's limits. */
wlm_status wlmi_bind(const wlmi_shape *shape, const wlm_csr *csr, const void *a_rowptr, const void *order, int fresh,
                     wlmi_bound *bound);
/* Checks a call's arguments and enqueues the passes. `call` must have this library's struct size. Here and below,
 * errors name `function`, which the user called. */
wlm_status wlmi_run(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                    const wlm_execute_args *call, const void *prepared);
/* WLM_ERR_INVALID_ARGUMENT or WLM_ERR_OVERFLOW if the matrix does not have the shape's types and ranges. */
wlm_status wlmi_shape_accepts(const wlmi_shape *shape, const wlm_csr *csr);

/* Fills the part of a plan that needs no matrix. The plan is then the user of the kernels, also after an error. */
wlm_status wlmi_plan_set_program(wlm_plan *plan, wlmi_device *device, const wlmi_loaded *loaded, const wlmi_spec *spec);

/* ---- launch.c ---- */

/* The grid of one pass. */
wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch);
/* Lets a launch of one product compute several of a batch. */
void wlmi_launch_repeat(wlmi_launch *launch, int64_t products);
/* Enqueues the passes of a kind; args is the first member of the kernels' argument struct. `products` is 1, but for a
 * batch (runtime/dispatch/batch.h). */
wlm_status wlmi_launch_all(const wlmi_shape *shape, const wlmi_bound *bound, wlmi_when when, int64_t products,
                           const struct wlm_args *args, void *stream);
/* WLM_ERR_INVALID_ARGUMENT where alpha or beta is not finite. */
wlm_status wlmi_check_factors(const wlm_execute_args *call);
/* Checks the arguments that all operations have, and copies them: scalars and values. */
wlm_status wlmi_take_call(const char *function, const wlmi_shape *shape, const wlm_execute_args *call,
                          struct wlm_args *args);
/* The lines of an array of the bound matrix, whose size args has. */
int64_t wlmi_lines_of(const wlmi_shape *shape, const struct wlm_args *args, const wlmi_array *array);
/* Checks the arrays of a call and their leading dimensions, and copies them to the arguments of the kernels. */
wlm_status wlmi_take_arrays(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                            const wlmi_call *call, void *kernel);
/* Checks the workspace of a call, of which `size` bytes are needed. */
wlm_status wlmi_take_workspace(const char *function, const wlm_execute_args *call, size_t size);
