/* A^T of a pattern on a CUDA device, by the kernels of templates/prelude/transpose.cu.in. */
#ifndef WLM_RUNTIME_TRANSPOSE_DEVICE_H
#define WLM_RUNTIME_TRANSPOSE_DEVICE_H

#include "runtime/dispatch/device.h"

/* One block of device memory for A^T and for making it, in bytes from its begin, each part aligned to 256. The scratch
 * comes last and is not needed afterwards; a caller that keeps A^T may have it elsewhere. */
typedef struct wlmi_transpose_layout {
  size_t rowptr, colind, order; /* what wlmi_transpose_pattern makes, of the sizes that it says */
  size_t scratch;               /* where it begins, so also the size of the three */
  size_t size;
} wlmi_transpose_layout;

/* WLM_ERR_OVERFLOW where the indices of A^T do not fit the types of csr, or nothing holds so many bytes. */
wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout);

/* Enqueues what fills rowptr, colind and order; `kernels` are those of the program that wlmi_generator_transpose emits.
 * No malloc, no sync: can be captured in a graph. The arrays are ready for what is enqueued on the stream afterwards,
 * but a product that is bound to them while the work runs must be `fresh` (wlmi_bind). */
wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream);

#endif
