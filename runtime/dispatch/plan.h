/* A problem bound to a matrix and to loaded code: everything that execute needs, computed beforehand.
 *
 * A plan has a shape, which any matrix of its types shares, and what follows from one matrix (`bound`). Binding is
 * arithmetic: no memory, no lock, no text. */
#ifndef WLM_RUNTIME_DISPATCH_PLAN_H
#define WLM_RUNTIME_DISPATCH_PLAN_H

#include "runtime/dispatch/device.h"
#include "select/select.h"

enum { WLM_BACKWARD_PASSES = 2 };

/* A loaded program and the types of its problem. */
typedef struct wlmi_shape {
  wlmi_device *device;
  int64_t n, heads, sample_width;
  wlm_index rowptr_type, colind_type, argmax_type;
  wlm_type dense_type, value_type;
  int has_values, has_bias, want_argmax, is_sddmm, uses_b;
  int is_attention, is_gradient; /* is_gradient: that of attention */
  wlm_score score;
  int has_dropout;
  int walks_a;                              /* of a transposed problem: the matrix that is bound is A itself */
  size_t dense_size, sum_size, argmax_size; /* of an element of B and C, of an accumulator, of a position */
  int pass_count;
  wlmi_pass passes[WLM_MAX_PASSES];
  void *kernels[WLM_MAX_PASSES];
  wlmi_bytes workspace, prepared;
} wlmi_shape;

/* What follows from one matrix. */
typedef struct wlmi_bound {
  struct wlm_args args; /* complete but for what is given with each call */
  int empty;            /* C has no rows or no columns: nothing to do */
  wlmi_launch launches[WLM_MAX_PASSES];
  size_t workspace_size, prepared_size;
} wlmi_bound;

/* A plan that runs other plans, as online tuning does. */
typedef struct wlmi_plan_mode {
  wlm_status (*execute)(const wlm_plan *plan, const wlm_execute_args *args);
  void (*destroy)(wlm_plan *plan); /* what mode_data owns, not the plan */
  const wlm_plan *(*current)(const wlm_plan *plan);
} wlmi_plan_mode;

/* Why the plan has its kernel, for explain. */
typedef struct wlmi_plan_record {
  wlmi_decision decision;
  wlm_stats stats;
  int estimated; /* the stats are, from rows, cols and nnz */
  char problem_key[WLM_SPEC_KEY];
  char split[16];
  int deterministic;
  double transpose_seconds; /* of building A^T, when that was done; 0 where the plan is for A */
  size_t transpose_bytes;
} wlmi_plan_record;

struct wlm_plan {
  wlmi_device *device;
  const wlmi_plan_mode *mode; /* NULL = the plan runs itself */
  void *mode_data;
  struct wlmi_upgrade *upgrade; /* the kernel that takes over once it is compiled; NULL = this one stays */
  const struct wlm_plan *(*upgraded)(const struct wlm_plan *plan); /* NULL until then */
  wlmi_shape shape;
  wlmi_bound bound;
  int is_prepared;
  const char *no_rebind; /* why the plan cannot be bound to another matrix; NULL = it can */
  /* Of a plan with argmax: the gradients by it, clear and scatter; or why there are none. */
  wlmi_pass backward_passes[WLM_BACKWARD_PASSES];
  void *backward_kernels[WLM_BACKWARD_PASSES];
  wlmi_launch backward[WLM_BACKWARD_PASSES];
  const void *a_rowptr, *a_colind; /* of A itself, transposed or not */
  int backward_uses_b;
  const char *no_backward;
  wlmi_plan_record record;
};

/* Everything of a program whose kernels are loaded that does not depend on a matrix; asks the device how many blocks of
 * a kernel fit. */
wlm_status wlmi_shape_make(wlmi_device *device, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                           const wlmi_spec *spec, wlmi_shape *shape);
/* Launches and sizes for a matrix of the shape's types: op(A), or A itself where the shape walks A; `order` as in
 * wlm_args. Of a transpose whose `order` is given the caller sets args.a_rowptr. With `fresh` rowptr and colind may
 * still be written by work that is enqueued before the product, and its kernels wait for that work before they read
 * them. WLM_ERR_OVERFLOW where the grid or a size is past what the device can take. */
wlm_status wlmi_bind(const wlmi_shape *shape, const wlm_csr *csr, const void *order, int fresh, wlmi_bound *bound);
/* WLM_ERR_INVALID_ARGUMENT where alpha or beta is not finite. */
wlm_status wlmi_check_factors(const wlm_execute_args *call);
/* What every operation takes from a call besides its arrays: scalars, leading dimensions, values. */
wlm_status wlmi_take_call(const wlmi_shape *shape, const wlm_execute_args *call, struct wlm_args *args);
/* Checks a call's arguments and enqueues the passes. Its struct has today's size. */
wlm_status wlmi_run(const wlmi_shape *shape, const wlmi_bound *bound, const wlm_execute_args *args,
                    const void *prepared);
/* The same of attention; wlmi_run calls it. */
wlm_status wlmi_run_attention(const wlmi_shape *shape, const wlmi_bound *bound, const wlm_execute_args *args,
                              const void *prepared);
/* Enqueues the passes of a kind; args is the first member of what the kernels have. */
wlm_status wlmi_launch_all(const wlmi_shape *shape, const wlmi_bound *bound, wlmi_when when,
                           const struct wlm_args *args, void *stream);
/* WLM_ERR_INVALID_ARGUMENT or WLM_ERR_OVERFLOW where the matrix is not one of the shape's types and ranges. */
wlm_status wlmi_shape_accepts(const wlmi_shape *shape, const wlm_csr *csr);

/* The part of a plan that no matrix is needed for. */
wlm_status wlmi_plan_set_program(wlm_plan *plan, wlmi_device *device, const wlmi_program *program,
                                 void *const kernels[WLM_MAX_PASSES], const wlmi_spec *spec);
void wlmi_plan_set_backward(wlm_plan *plan, const wlmi_program *program, void *const kernels[WLM_MAX_PASSES],
                            const wlmi_spec *spec);
/* For the matrix of `bound`; csr is A itself. Where the grid is past what the device can take the plan stays as it was.
 */
wlm_status wlmi_plan_bind_backward(wlm_plan *plan, const wlmi_bound *bound, const wlm_csr *csr);
wlm_status wlmi_plan_run_backward(const wlm_plan *plan, const wlm_execute_args *args);

/* The grid of one pass. */
wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch);

#endif
