/* What the kernel of validate.cu.in finds wrong with A; the runtime reads it as it is. Like args.h this text stands at
 * the top of the emitted source and includes nothing. */
#ifndef WLM_FAULTS_H
#define WLM_FAULTS_H

struct wlm_row_fault {
  long long row;              /* the first row that is wrong; -1 = none */
  long long from, to;         /* where rowptr says that it begins and ends */
  long long position, column; /* of its first column that is out of range; position = -1 where rowptr is wrong */
};

/* The scratch, which must be 0 before the launch. */
struct wlm_validation {
  struct wlm_row_fault fault;
  unsigned long long blocks_done;
  unsigned long long bad_row, bad_position; /* rows - row and nnz - position; 0 = none */
};

enum { WLM_VALIDATE_THREADS = 256 };

#endif
