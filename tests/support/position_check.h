/* Compares a kernel's argmax indices with wlmi_reference_rows: they must be equal, and nothing outside of rows x n
 * may be written. */
#pragma once

#include "core/csr/csr.h"
#include "runtime/dispatch/device.h"

typedef struct position_check {
  wlmi_device *device;
  const wlmi_csr_host *a;
  const wlm_problem *problem;
  int64_t ldc;
  int64_t *expected;    /* rows x n */
  char *poison, *after; /* `count` elements; the rows x n begin at `first` */
  int64_t first, count;
  void *memory; /* the same array on the device */
} position_check;

/* `shift` is the offset of the array in elements, so that vector stores are misaligned. From the call b, seed, ldb
 * and ldc are read. `order` (or NULL) is of a transpose: the position in A of each edge, in that type. */
wlm_status position_check_make(wlmi_device *device, const wlmi_csr_host *a, const wlm_problem *problem,
                               const wlm_execute_args *call, const void *order, wlm_index order_type, int shift,
                               position_check *check);
void position_check_release(position_check *check); /* a zeroed check is valid */

/* Fills the array with poison; pass *arg to the execute that follows. */
wlm_status position_check_begin(const position_check *check, void **arg);
/* WLM_ERR_MISMATCH: the detail says what differs. */
wlm_status position_check_end(const position_check *check);
