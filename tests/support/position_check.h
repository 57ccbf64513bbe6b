/* Compares a kernel's argmax indices with wlmi_reference_positions: they must be equal, and nothing outside of rows x n
 * may be written. */
#ifndef WLM_TESTS_POSITION_CHECK_H
#define WLM_TESTS_POSITION_CHECK_H

#include "csr/csr.h"
#include "runtime/dispatch/device.h"

typedef struct position_check {
  wlmi_device *device;
  const wlmi_csr_host *a;
  const wlm_problem *problem;
  int64_t ldc;
  int64_t *expected;    /* rows x n */
  char *poison, *after; /* `count` elements of which rows x n begin at `first` */
  int64_t first, count;
  void *memory; /* the same on the device */
} position_check;

/* `shift`: elements by which the positions are moved from where vectors could be stored. Of the call seed, ldb and ldc
 * are read. `order`: of a transpose, where in A each edge is, of that type; or NULL. */
wlm_status position_check_make(wlmi_device *device, const wlmi_csr_host *a, const wlm_problem *problem,
                               const wlm_execute_args *call, const void *b, const void *order, wlm_index order_type,
                               int shift, position_check *check);
void position_check_release(position_check *check); /* also of a zeroed one */

/* Poison everywhere; *arg is for the execute that follows. */
wlm_status position_check_begin(const position_check *check, void **arg);
/* WLM_ERR_MISMATCH says what differs. */
wlm_status position_check_end(const position_check *check);

#endif
