/* What the kernel of stats.cu.in leaves of the rows of A; the runtime reads it as it is. Like args.h this text stands
 * at the top of the emitted source and includes nothing. */
#ifndef WLM_STATS_H
#define WLM_STATS_H

struct wlm_row_stats {
  long long first, last;       /* rowptr[0] and rowptr[rows] */
  long long bad_row, from, to; /* the first row that ends (to) before it begins (from); -1 = none */
  long long longest, empty, le_4, le_16;
  double squares; /* sum of (length - mean)^2 */
  double top;     /* non-zeros of the longest 1 % of the rows, at least one row */
};

/* The scratch begins with this and goes on with the bins of the histogram; both must be 0 before the launch. */
struct wlm_stats_work {
  struct wlm_row_stats result;
  unsigned long long blocks_done, longest;
  unsigned long long bad; /* rows - bad_row; 0 = none */
};
struct wlm_length_bin {
  unsigned long long rows;
  unsigned long long nnz; /* of these rows; only where lengths share a bin */
};

/* Lengths below 1,024 have a bin each, longer ones 128 bins an octave. */
enum { WLM_BINS_SINGLE = 1024, WLM_BINS_SINGLE_BITS = 10, WLM_BINS_OCTAVE_BITS = 7 };
enum { WLM_STATS_THREADS = 256, WLM_STATS_ROWS_EACH = 4, WLM_STATS_MOST_BLOCKS = 1024 };

#endif
