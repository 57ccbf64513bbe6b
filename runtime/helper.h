/* Kernels that help with a matrix (wlmi_helper), and what the host does in their place where there are none: it works
 * on copies of the device's arrays. */
#pragma once

#include "runtime/context_state.h"

/* The kernels for one call, with scratch memory. */
typedef struct wlmi_help {
  void *loaded[WLMI_MAX_PASSES];
  void *const *kernels; /* NULL = the host does the work, and there is no scratch */
  wlmi_lent scratch;
} wlmi_help;

/* Loads a helper for a matrix with these index types. There are no kernels on the host device, without a compiler, and
 * with may_wait = 0 while they are compiled in the background. */
wlm_status wlmi_help_load(wlm_context *context, wlmi_helper helper, const wlm_csr *types, int may_wait,
                          wlmi_help *help);
/* Loads it and takes scratch in the stream's workspace. End it also after an error, when its work is enqueued. */
wlm_status wlmi_help_begin(wlm_context *context, wlmi_helper helper, const wlm_csr *types, int may_wait, void *stream,
                           size_t scratch_size, wlmi_help *help);
void wlmi_help_end(wlm_context *context, void *stream, wlmi_help *help);

/* Launches a helper's kernel. WLM_ERR_OVERFLOW for more blocks than a grid has. */
wlm_status wlmi_help_launch(const wlmi_device *device, void *kernel, int64_t blocks, unsigned int threads,
                            int dependent, const struct wlm_args *args, void *stream);

static inline int64_t wlmi_divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* A pointer to an array of a device, while the host does the work. */
typedef struct wlmi_mirror {
  const char *what; /* of the array, for messages */
  void *pointer;    /* the address of the pointer */
  int64_t count;
  size_t size;     /* of an element */
  int is_result;   /* the host writes it, and does not read it */
  void *on_device; /* the array, while the pointer is to a copy */
} wlmi_mirror;

/* Lets each pointer that is not NULL point to a copy in host memory, which has the array's content, in the stream's
 * order, unless it is a result. On the host device the pointers stay as they are. Close the mirrors also after an
 * error. */
wlm_status wlmi_mirror_open(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count);
/* Copies results to the device if `status` is WLM_OK, once the stream's earlier work has ended, and releases the
 * copies. Returns `status`, or the error of a copy. */
wlm_status wlmi_mirror_close(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count, wlm_status status);
