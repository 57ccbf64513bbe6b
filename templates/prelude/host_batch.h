
/* A block of a batch's work: the blocks of the first product, then those of the second, and so on. */
#undef WLM_BLOCK
#define WLM_BLOCK(name)                                                                                       \
  static void name##_of_product(const struct wlm_args *restrict args, long long block, long long blocks);     \
  static void name(const struct wlm_args *restrict args, long long block, long long blocks) {                 \
    const long long of_product = blocks / args->batch.count;                                                  \
    const struct wlm_args product = wlm_product_args(*args, block / of_product);                              \
    name##_of_product(&product, block % of_product, of_product);                                              \
  }                                                                                                           \
  static void name##_of_product(const struct wlm_args *restrict args, long long block, long long blocks)
