% if problem.acc_bytes == 8 then
#ifndef __CUDA_ARCH__
double exp(double);
double log(double);
#endif
WLM_FN wlm_acc_t wlm_exp(wlm_acc_t x) { return exp(x); }
WLM_FN wlm_acc_t wlm_log(wlm_acc_t x) { return log(x); }
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
float logf(float);
WLM_FN wlm_acc_t wlm_exp(wlm_acc_t x) { return expf(x); }
WLM_FN wlm_acc_t wlm_reciprocal(wlm_acc_t x) { return 1 / x; }
#endif
WLM_FN wlm_acc_t wlm_log(wlm_acc_t x) { return logf(x); }
% end
