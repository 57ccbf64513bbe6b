/* Which edges of a row a sampled problem uses (ES-SpMM, section IV-D, and the two additions that
 * common/sampling.h defines; that file is the reference for these functions). */
WLM_FN unsigned long long wlm_row_hash(unsigned long long seed, long long row) {
  unsigned long long x = seed ^ ((unsigned long long)row * 0x9E3779B97F4A7C15ull);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/* The first stride from 577 on that is coprime with the degree: then k -> stride * k mod degree repeats no edge. */
WLM_FN int wlm_coprime_stride(long long degree) {
  int stride = 577;
  for (;; stride++) {
    int a = stride, b = (int)(degree % stride);
    while (b) {
      int rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return stride;
  }
}

/* stride * k < 2^31 for every sample width, so the long division is a 32-bit one where it is needed at all. */
WLM_FN long long wlm_strided(long long k, int stride, long long degree, long long shift) {
  unsigned int product = (unsigned int)stride * (unsigned int)k;
  long long position = product < degree ? product : product % (unsigned int)degree;
  position += shift;
  return position < degree ? position : position - degree;
}
