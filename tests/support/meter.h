/* An allocator of the library that counts. */
#pragma once

#include <stdint.h>

typedef struct meter {
  int64_t live, calls, most; /* most: the bytes of the largest allocation */
  int64_t fail_at, failures; /* allocations fail from this call on, -1 = never; so many of them, 0 = all */
} meter;

/* From now on the library allocates by the meter, which must stay. Memory of before and after may be released at any
 * time. wlm_set_allocator(NULL) ends it. */
void meter_begin(meter *m);
