/* Column-major arrays of a call. Kernels of most families take them where they are (templates/prelude/steps_args.h),
 * which saves two passes. An edge then reads an element of B from each column, and a row of C is stored so, too. Where
 * this takes longer, and for other kernels, arrays are copied to rows in the workspace before the passes, and results
 * back behind them (templates/programs/layout.cu.in). An array of one column is both and is used where it is. */
#pragma once

#include "runtime/dispatch/plan.h"

/* Whether the arrays have one that may be copied. */
int wlmi_has_columns(const wlmi_arrays *arrays);
/* Whether an array is. */
int wlmi_is_copied(const wlmi_layout *layout, const wlmi_array *array);

/* Decides which arrays are copied, and places the copies behind `used` bytes of the workspace. `args` has the size of
 * the matrix. WLM_ERR_OVERFLOW. */
wlm_status wlmi_layout_bind(const wlmi_shape *shape, const struct wlm_args *args, size_t used, wlmi_layout *layout);

/* The pointers and leading dimensions of a call, while its kernels have those of the copies; of a batch, whose products
 * are copied together, also the bytes from one product's array to the next one's. */
typedef struct wlmi_given {
  void *address;
  long long ld, stride;
} wlmi_given;

/* Enqueues the copies of what is read, and lets the kernels' arguments, which hold the caller's arrays, name the
 * copies and have the steps of the others. C is read where beta is not 0. products: of this launch. */
wlm_status wlmi_layout_begin(const wlmi_shape *shape, const wlmi_layout *layout, void *workspace, int64_t products,
                             void *kernel, wlmi_given given[WLMI_MOST_COPIES], void *stream);
/* Enqueues the copies of what the kernels wrote. */
wlm_status wlmi_layout_end(const wlmi_shape *shape, const wlmi_layout *layout, int64_t products, const void *kernel,
                           const wlmi_given given[WLMI_MOST_COPIES], void *stream);
