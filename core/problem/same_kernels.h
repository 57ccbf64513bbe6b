/* Which kernels measure like others: a release that changes templates, but not what the compiler makes of them, lists
 * the hashes of before beside those of now in same_kernels.inc, so that measurements of before stay valid. */
#pragma once

#include <stdint.h>

typedef struct wlmi_same_kernel {
  const char *family, *before, *now; /* before, now: source_hash of a measurement */
} wlmi_same_kernel;

/* The hash of the kernel that measures like this one, itself where the list has no other. Lists are sorted by `before`
 * and have no circles. */
const char *wlmi_same_kernel_in(const wlmi_same_kernel *list, int64_t count, const char *hash);
/* In the list of this version. */
const char *wlmi_same_kernel_now(const char *hash);

extern const wlmi_same_kernel wlmi_same_kernels[];
extern const int64_t wlmi_same_kernels_count;
