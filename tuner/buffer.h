/* Arrays of a checked call in device memory, with guard zones behind them that must not be written. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct wlmi_buffer {
  void *memory; /* on the device */
  size_t size;
} wlmi_buffer;

/* The size of a guard zone, and what results and positions are filled with before a call: NaN, and an invalid
 * position. */
enum { WLM_GUARD = 4096, WLM_RESULT_POISON = 0xFF, WLM_POSITION_POISON = 0xA5 };

/* Allocates `rows` rows of `ld` elements on the device, with a guard zone, and, if `host` is not NULL, on the host. */
wlm_status wlmi_buffer_make(wlmi_device *device, size_t size, int64_t rows, int64_t ld, const char *what, void **host,
                            wlmi_buffer *buffer);

/* Fills an array of the host with random numbers in [-1, 1), rounded to the type. */
void wlmi_fill_uniform(wlm_type type, void *to, int64_t count, uint64_t seed);

/* WLM_ERR_MISMATCH if one of the bytes is not the one that it was filled with; `what` is for messages, "behind c". */
wlm_status wlmi_guard_check(wlmi_device *device, const void *from, size_t size, int byte, const char *what);
