/* The arguments that only batches have. They stand at the end of struct wlm_args in the sources of their kernels, and
 * behind it in struct wlm_batch_launch of the library, which is the same memory. Like args.h it includes nothing. */
#ifndef WLM_BATCH_ARGS_H
#define WLM_BATCH_ARGS_H

struct wlm_batch {
  long long count;                           /* products of this launch */
  long long values, b, c, x, arg, workspace; /* bytes from one product's memory to the next one's; 0 = the same */
};

#endif
