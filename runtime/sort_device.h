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
