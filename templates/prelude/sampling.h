/* Which edges of a row a sampled problem uses (ES-SpMM, section IV-D, and the two additions that
 * core/problem/sampling.h defines; that file is the reference for these functions). */
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

/* x with a x = 1 (mod modulus) by Euclid's algorithm; 0 where a and the modulus have a common divisor. */
WLM_FN int wlm_inverse(int a, int modulus) {
  int x = 1, next = 0, rest = modulus;
  while (rest) {
    const int quotient = a / rest, less = a - quotient * rest, before = x - quotient * next;
    a = rest;
    rest = less;
    x = next;
    next = before;
  }
  return a != 1 ? 0 : x < 0 ? x + modulus : x;
}

/* How often a sample takes the edge that lies `place` edges behind the shift of its row, which is longer than the
 * width: for how many k < width stride k = place (mod degree). That k is (place + t degree) / stride with the t <
 * stride that makes it whole, which the inverse of degree (mod stride) gives. Where there is no inverse the stride
 * divides degree, being a prime then, and every k has company in steps of degree / stride. */
WLM_FN int wlm_times_strided(long long place, int stride, int inverse, long long degree, int width) {
  const int part = (int)(place % stride);
  if (!inverse) {
    const long long period = degree / stride, k = place / stride;
    return part == 0 && k < width ? (int)((width - 1 - k) / period) + 1 : 0;
  }
  return place + (long long)((stride - part) * inverse % stride) * degree < (long long)stride * width;
}
