/* An allocator of the library that counts. */
#pragma once

#include <stdint.h>

typedef struct meter {
  int64_t live, calls, fail_at; /* fail_at: allocations fail from this call on; -1 = never */
} meter;

/* From now on the library allocates by the meter, which must stay. Memory of before and after may be released at any
 * time. wlm_set_allocator(NULL) ends it. */
void meter_begin(meter *m);
