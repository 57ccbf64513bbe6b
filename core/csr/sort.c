/* Bottom-up merge sort over runs that insertion sort makes. Most rows are short and never leave the first step; runs
 * that already follow one another are not merged, so a row in order costs one pass. */
#include "core/csr/sort.h"

#include <string.h>

enum { RUN = 16 };

static void insertion_sort(uint64_t *entries, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    uint64_t entry = entries[i];
    int64_t at = i;
    for (; at > 0 && entries[at - 1] >> 32 > entry >> 32; at--) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
}

/* Merges the neighbours from[0, middle) and from[middle, end) into `to`. */
static void merge(const uint64_t *from, int64_t middle, int64_t end, uint64_t *to) {
  int64_t left = 0, right = middle;
  if (from[middle - 1] >> 32 <= from[middle] >> 32) {
    memcpy(to, from, (size_t)end * sizeof *to);
    return;
  }
  while (left < middle && right < end) *to++ = from[right] >> 32 < from[left] >> 32 ? from[right++] : from[left++];
  memcpy(to, from + left, (size_t)(middle - left) * sizeof *to);
  memcpy(to + (middle - left), from + right, (size_t)(end - right) * sizeof *to);
}

void wlmi_sort_entries(uint64_t *entries, uint64_t *scratch, int64_t count) {
  uint64_t *from = entries, *to = scratch;
  for (int64_t i = 0; i < count; i += RUN) insertion_sort(entries + i, count - i < RUN ? count - i : RUN);
  for (int64_t run = RUN; run < count; run *= 2) {
    for (int64_t i = 0; i < count; i += 2 * run) {
      int64_t end = count - i < 2 * run ? count - i : 2 * run;
      if (end > run)
        merge(from + i, run, end, to + i);
      else
        memcpy(to + i, from + i, (size_t)end * sizeof *to);
    }
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != entries) memcpy(entries, from, (size_t)count * sizeof *entries);
}
