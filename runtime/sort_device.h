/* The rounds of the radix sort of templates/prelude/transpose.cu.in, which both of its programs share. */
#ifndef WLM_RUNTIME_SORT_DEVICE_H
#define WLM_RUNTIME_SORT_DEVICE_H

#include "runtime/dispatch/device.h"

typedef struct wlmi_sort {
  int rounds;
  int64_t tiles, units; /* entries of a tile */
  size_t counts;        /* bytes, a multiple of 256 */
} wlmi_sort;

/* Of nnz entries whose keys are 0 to keys - 1. WLM_ERR_OVERFLOW where nothing holds so many. */
wlm_status wlmi_sort_make(int64_t nnz, int64_t keys, wlmi_sort *sort);

size_t wlmi_sort_round_up(size_t size); /* to what parts of a block of memory are aligned to */

/* Enqueues all rounds. args has what the template names, but for c, arg and seed. In the end the sorted keys are in
 * keys[0] and their positions in order[0], and args->b and args->values are these; the second ones serve where there is
 * more than one round. */
wlm_status wlmi_sort_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlmi_sort *sort,
                             void *const keys[2], void *const order[2], struct wlm_args *args, void *stream);
/* Enqueues the last pass with a thread for each of `threads` entries. */
wlm_status wlmi_sort_finish(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], int64_t threads,
                            const struct wlm_args *args, void *stream);

#endif
