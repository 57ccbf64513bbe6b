/* The arguments of attention whose scores are sums over columns. They stand behind struct wlm_attention at the end of
 * struct wlm_args in the sources of its kernels, and in struct wlm_attention_args of the library. */
#ifndef WLM_PRODUCT_ARGS_H
#define WLM_PRODUCT_ARGS_H

struct wlm_products {
  const void *q;   /* rows x n, of B's type; its leading dimension is wlm_attention.term_stride */
  const void *att; /* n elements of the accumulator's type */
  void *datt;      /* rows x n of that type, or NULL */
  const void *k;   /* cols x n, as q */
  void *dk;        /* cols x n of B's type, dense, or NULL */
  struct wlm_number scale; /* of the sum */
};

#endif
