/* What this machine has. */
#ifndef WLM_COMMON_MACHINE_H
#define WLM_COMMON_MACHINE_H

#include <stdint.h>

/* Bytes of memory that this process may still take without swapping: what the system has available, less where the
 * limits of its control group (a container) or of its address space (ulimit -v) leave less. INT64_MAX where nothing of
 * that can be told. */
int64_t wlmi_machine_free_memory(void);

#endif
