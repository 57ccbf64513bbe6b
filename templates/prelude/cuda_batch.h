
/* A kernel of a batch: z of its grid counts the products, and y the blocks of the slow axis. Where the slow axis needs
 * both, products are launched one by one (wlmi_batch_bind). Templates do not see any of this. */
WLM_FN int wlm_is_folded(void) { return gridDim.y == 65535; }
WLM_FN long long wlm_slow_block_of_product(void) { return wlm_is_folded() ? wlm_slow_block() : blockIdx.y; }
#define wlm_slow_block wlm_slow_block_of_product
#undef WLM_KERNEL
#define WLM_KERNEL(name, threads)                                                         \
  WLM_FN void name##_of_product(const struct wlm_args args);                              \
  WLM_C __global__ void __launch_bounds__(threads, 65536 / ((threads) * (WLM_REGISTERS))) \
      name(const __grid_constant__ struct wlm_args args) {                                \
    name##_of_product(wlm_product_args(args, wlm_is_folded() ? 0 : blockIdx.z));          \
  }                                                                                       \
  WLM_FN void name##_of_product(const struct wlm_args args)
