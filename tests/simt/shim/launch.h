/* Runs one launch of an emitted kernel that was compiled with simt.h. An error ends the process with a line on stderr:
 * "simt: FILE:LINE: what is wrong". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "templates/prelude/args.h"

typedef enum simt_args { SIMT_ARGS, SIMT_ATTENTION_ARGS, SIMT_MESSAGE_ARGS, SIMT_BATCH_ARGS } simt_args;

typedef struct simt_launch {
  void (*kernel)(struct wlm_args args);
  void (*shared_range)(unsigned int **begin, unsigned int **end); /* simt_shared_range of the kernel's library */
  unsigned int grid[3], threads;
  size_t shared_bytes; /* dynamic shared memory */
  simt_args takes;     /* what the kernel takes; its first member is passed here */
  uint64_t seed;       /* decides the order in which blocks, warps and lanes run */
} simt_launch;

void simt_run(const simt_launch *launch, const struct wlm_args *args);
