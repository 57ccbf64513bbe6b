/* The 16-bit types, kept as unsigned short: f16 (IEEE binary16) and bf16 (the upper half of a float). Widening is
 * exact. Narrowing rounds to nearest, ties to even; what is beyond the range becomes infinity, NaN a quiet NaN.
 * CUDA has instructions for both (for bf16 from sm_80 on); elsewhere it is arithmetic on bits, free of branches, so
 * that compilers vectorise it. */
union wlm_word { float value; unsigned int bits; };
WLM_FN float wlm_from_bits(unsigned int bits) { union wlm_word word; word.bits = bits; return word.value; }
WLM_FN unsigned int wlm_to_bits(float value) { union wlm_word word; word.value = value; return word.bits; }

WLM_FN float wlm_f16_to_f32(unsigned short half) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#else
  /* 2^112 is what the two exponents differ by; the product of a denormal is exact too. */
  const unsigned int shifted = (half & 0x7fffu) << 13;
  const unsigned int bits = wlm_to_bits(wlm_from_bits(shifted) * 0x1p112f);
  return wlm_from_bits(bits | (shifted >= 0x0f800000u ? 0x7f800000u : 0) | (half & 0x8000u) << 16);
#endif
}

WLM_FN unsigned short wlm_f32_to_f16(float value) {
#ifdef __CUDA_ARCH__
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const unsigned int bits = wlm_to_bits(value), size = bits & 0x7fffffffu;
  /* Below 2^-14 the step is 2^-24, which is that of floats from 0.5 on: adding 0.5 rounds. */
  const unsigned int small = wlm_to_bits(wlm_from_bits(size) + 0.5f) - 0x3f000000u;
  const unsigned int normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  const unsigned int large = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (unsigned short)((bits >> 16 & 0x8000u) | (size < 0x38800000u ? small : size < 0x47800000u ? normal : large));
#endif
}

WLM_FN float wlm_bf16_to_f32(unsigned short half) { return wlm_from_bits((unsigned int)half << 16); }

WLM_FN unsigned short wlm_f32_to_bf16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned short half;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const unsigned int bits = wlm_to_bits(value);
  const unsigned int rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (unsigned short)(((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded) >> 16);
#endif
}
