/* The resources of this machine. */
#pragma once

#include <stdint.h>

/* Bytes of memory that this process may still allocate without swapping: the system's available memory, or less if its
 * control group (a container) or its address space (ulimit -v) is limited. INT64_MAX if none of this is known. */
int64_t wlmi_machine_free_memory(void);
