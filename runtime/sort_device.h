/* Builds A^T and converts coordinates by the radix sort of templates/programs/transpose.cu.in. */
#pragma once

#include "runtime/dispatch/device.h"

/* The layout of one block of device memory for A^T and for building it: offsets in bytes, each aligned to 256. The
 * scratch comes last and is not needed afterwards, so a caller that keeps A^T may allocate it separately. */
typedef struct wlmi_transpose_layout {
  size_t rowptr, colind, order; /* the arrays of wlmi_transpose_pattern, with the sizes given there */
  size_t scratch;               /* offset of the scratch, which is also the size of the three arrays */
  size_t size;
} wlmi_transpose_layout;

/* WLM_ERR_OVERFLOW if the indices of A^T do not fit the types of csr, or the size does not fit size_t. */
wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout);

/* Enqueues the work that fills rowptr, colind and order. `kernels` are those of
 * WLMI_HELPER_TRANSPOSE. No malloc and no sync, so it can be captured in a graph. Work that is enqueued on the stream
 * afterwards may use the arrays; a product that is bound to them while this work may still run must be `fresh`
 * (wlmi_bind). */
wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream);

/* Bytes of scratch that wlmi_coo_enqueue needs, aligned to 256; 0 where there is nothing to sort. */
wlm_status wlmi_coo_scratch_size(const wlm_coo *coo, size_t *size);

/* No malloc and no sync, so it can be captured in a graph. Behaves as wlm_csr_from_coo, which has checked the
 * arguments. */
wlm_status wlmi_coo_enqueue(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const wlm_coo *coo,
                            void *scratch);
