#include "core/problem/sampling.h"

#include "core/base/random.h"

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

uint64_t wlmi_sample_hash(uint64_t seed, int64_t row) { return wlmi_mix(seed ^ ((uint64_t)row * WLMI_GOLDEN)); }

int64_t wlmi_sample_kept(wlm_sample strategy, int64_t degree, int64_t width) {
  return strategy != WLM_SAMPLE_NONE && degree > width ? width : degree;
}

static int64_t stride_of(wlm_sample strategy, int64_t degree) {
  int64_t stride = strategy == WLM_SAMPLE_NONE || strategy == WLM_SAMPLE_BUCKET ? 1 : WLMI_FASTRAND_STRIDE;
  if (strategy == WLM_SAMPLE_FASTRAND_COPRIME)
    while (degree > 1 && gcd(stride, degree) != 1) stride++;
  return stride;
}

wlmi_row_sample wlmi_row_sample_of(const wlm_sampling *sampling, uint64_t seed, int64_t row, int64_t degree) {
  wlmi_row_sample sample = {degree, wlmi_sample_kept(sampling->sample, degree, sampling->width), 1, 0};
  if (sample.kept == degree) return sample;
  sample.stride = stride_of(sampling->sample, degree);
  if (seed) sample.shift = (int64_t)(wlmi_sample_hash(seed, row) % (uint64_t)degree);
  return sample;
}

int64_t wlmi_sample_position(const wlmi_row_sample *sample, int64_t k) {
  return sample->kept == sample->degree ? k : (k * sample->stride + sample->shift) % sample->degree;
}

double wlmi_dropout_factor(double dropout, uint64_t seed, int64_t at) {
  return (float)(wlmi_sample_hash(seed, at) >> 40) * 0x1p-24f < (float)dropout ? 0 : 1 / (1 - dropout);
}
