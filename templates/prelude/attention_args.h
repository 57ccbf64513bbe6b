/* The arguments that only attention has. They stand at the end of struct wlm_args in the sources of its kernels, and
 * behind it in struct wlm_attention_args of the library, which is the same memory. Like args.h it includes nothing. */
#ifndef WLM_ATTENTION_ARGS_H
#define WLM_ATTENTION_ARGS_H

/* A number as both types of accumulators: to convert it takes a kernel as long as an exponential. */
struct wlm_number {
  double wide;
  float narrow;
};

struct wlm_attention {
  const void *left, *right; /* terms of a score for each row and for each column of A, x heads; of the accumulator's type */
  const void *delta;        /* of the gradient: sum over a head's columns of dC * C, rows x heads */
  void *softmax;            /* rows x heads x 2: the largest score, 1 / sum of exp(score - largest); the gradient reads it */
  void *dright, *dvalues;   /* of the gradient, both of the accumulator's type */
  struct wlm_number slope;  /* of leaky_relu */
  struct wlm_number dropped, kept; /* of dropout: the share of weights that are 0, and what the others are multiplied by */
  long long term_stride;    /* elements from row to row of left and right */
};

#endif
