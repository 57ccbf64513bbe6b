% if problem.acc_bytes == 8 then
#ifndef __CUDA_ARCH__
double exp(double);
#endif
WLM_FN wlm_acc_t wlm_exp(wlm_acc_t x) { return exp(x); }
WLM_FN wlm_acc_t wlm_reciprocal(wlm_acc_t x) { return 1 / x; }
% else
#ifdef __CUDA_ARCH__
WLM_FN wlm_acc_t wlm_exp(wlm_acc_t x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
}
WLM_FN wlm_acc_t wlm_reciprocal(wlm_acc_t x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
#else
float expf(float);
WLM_FN wlm_acc_t wlm_exp(wlm_acc_t x) { return expf(x); }
WLM_FN wlm_acc_t wlm_reciprocal(wlm_acc_t x) { return 1 / x; }
#endif
% end
/* exp(score - base); 1 where the score is the one that became the base. */
WLM_FN wlm_acc_t wlm_power(wlm_acc_t score, wlm_acc_t base) { return wlm_exp(wlm_plus(score, -base)); }

/* Of a row and head: the largest score, and 1 / the sum of exp(score - largest); 0 and 0 where no edge has a weight. */
struct wlm_softmax_pair { wlm_acc_t largest, scale; };
WLM_FN void wlm_store_pair(wlm_acc_t *to, wlm_acc_t base, wlm_acc_t total, wlm_acc_t largest) {
  to[0] = total == 0 ? 0 : largest;
  to[1] = total == 0 ? 0 : wlm_exp(largest - base) / total;
}
