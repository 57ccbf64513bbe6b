/* The rounds of the radix sort of templates/programs/transpose.cu.in, for building A^T and for converting coordinates.
 */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_sort {
  int rounds;
  int64_t tiles, units; /* entries of a tile */
  size_t counts;        /* bytes, a multiple of 256 */
} wlmi_sort;

/* Plans a sort of nnz entries with keys 0 to keys - 1. WLM_ERR_OVERFLOW if the sizes overflow. */
wlm_status wlmi_sort_make(int64_t nnz, int64_t keys, wlmi_sort *sort);

size_t wlmi_sort_round_up(size_t size); /* to the alignment of the parts of a memory block */

/* Enqueues all rounds. args has the template's arguments except c, arg and seed. At the end the sorted keys are in
 * keys[0] and their positions in order[0], to which args->b and args->values point. The second buffers are used only
 * with more than one round. */
wlm_status wlmi_sort_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlmi_sort *sort,
                             void *const keys[2], void *const order[2], struct wlm_args *args, void *stream);
/* Enqueues the last pass with a thread for each of `threads` entries. */
wlm_status wlmi_sort_finish(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], int64_t threads,
                            const struct wlm_args *args, void *stream);

/* Builds the pattern of A^T on a CUDA device with the kernels of templates/programs/transpose.cu.in. */

/* The layout of one block of device memory for A^T and for building it: offsets in bytes, each aligned to 256. The
 * scratch comes last and is not needed afterwards, so a caller that keeps A^T may allocate it separately. */
typedef struct wlmi_transpose_layout {
  size_t rowptr, colind, order; /* the arrays of wlmi_transpose_pattern, with the sizes given there */
  size_t scratch;               /* offset of the scratch, which is also the size of the three arrays */
  size_t size;
} wlmi_transpose_layout;

/* WLM_ERR_OVERFLOW if the indices of A^T do not fit the types of csr, or the size does not fit size_t. */
wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout);

/* Enqueues the work that fills rowptr, colind and order. `kernels` are those of the program that
 * wlmi_generator_transpose emits. No malloc and no sync, so it can be captured in a graph. Work that is enqueued on the
 * stream afterwards may use the arrays; a product that is bound to them while this work may still run must be `fresh`
 * (wlmi_bind). */
wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream);

/* Converts coordinates to CSR on a CUDA device with the program of wlmi_generator_coo. */

/* Bytes of scratch that wlmi_coo_enqueue needs, aligned to 256; 0 where there is nothing to sort. */
wlm_status wlmi_coo_scratch_size(const wlm_coo *coo, size_t *size);

/* No malloc and no sync, so it can be captured in a graph. Behaves as wlm_csr_from_coo, which has checked the
 * arguments. */
wlm_status wlmi_coo_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_coo *coo,
                            void *scratch);
