/* Converts the 16-bit types by their definition. A number is an integer of `fraction` + 1 bits times a power of two;
 * `least` is the exponent of the smallest normal numbers and of all subnormal ones. The bit patterns of ascending
 * numbers ascend by one, so rounding up carries into the exponent, and finally into infinity, without extra code. */
#include "core/problem/element.h"

#include <float.h>
#include <math.h>

typedef struct half_format {
  int fraction, least;
} half_format;

static const half_format f16 = {10, -14}, bf16 = {7, -126};

static double widen(half_format format, uint16_t bits) {
  const int mask = (1 << format.fraction) - 1, fraction = bits & mask, exponent = (bits & 0x7fff) >> format.fraction;
  double value;
  if (exponent == 0x7fff >> format.fraction)
    value = fraction ? (double)NAN : (double)INFINITY;
  else if (exponent)
    value = ldexp(fraction + mask + 1, exponent - 1 + format.least - format.fraction);
  else
    value = ldexp(fraction, format.least - format.fraction);
  return bits & 0x8000 ? -value : value;
}

static uint16_t narrow(half_format format, double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0, infinity = (uint16_t)(0x7fff & ~((1 << format.fraction) - 1));
  int exponent;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1 << (format.fraction - 1));
  if (isinf(value)) return (uint16_t)(sign | infinity);
  if (value == 0) return sign;
  frexp(value, &exponent);
  if (--exponent < format.least) exponent = format.least;
  if (exponent > 128) return (uint16_t)(sign | infinity);
  const int steps = (int)rint(ldexp(fabs(value), format.fraction - exponent));
  const int bits = ((exponent - format.least) << format.fraction) + steps;
  return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

double wlmi_element_get(wlm_type type, const void *from, int64_t index) {
  switch (type) {
    case WLM_F32: return (double)((const float *)from)[index];
    case WLM_F16: return widen(f16, ((const uint16_t *)from)[index]);
    case WLM_BF16: return widen(bf16, ((const uint16_t *)from)[index]);
    case WLM_F64: break;
  }
  return ((const double *)from)[index];
}

void wlmi_element_put(wlm_type type, void *to, int64_t index, double value) {
  switch (type) {
    case WLM_F32: ((float *)to)[index] = (float)value; break;
    case WLM_F16: ((uint16_t *)to)[index] = narrow(f16, value); break;
    case WLM_BF16: ((uint16_t *)to)[index] = narrow(bf16, value); break;
    case WLM_F64: ((double *)to)[index] = value; break;
  }
}

void wlmi_elements_read(wlm_type type, const void *from, int64_t index, int64_t count, double *to) {
  if (type == WLM_F32)
    for (int64_t i = 0; i < count; i++) to[i] = (double)((const float *)from)[index + i];
  else
    for (int64_t i = 0; i < count; i++) to[i] = wlmi_element_get(type, from, index + i);
}

double wlmi_element_round(wlm_type type, double value) {
  double held = 0; /* holds an element of any type; bytes that are not written stay 0 */
  wlmi_element_put(type, &held, 0, value);
  return wlmi_element_get(type, &held, 0);
}

double wlmi_element_unit(wlm_type type) {
  static const double units[] = {[WLM_F32] = 0x1p-24, [WLM_F16] = 0x1p-11, [WLM_BF16] = 0x1p-8, [WLM_F64] = 0x1p-53};
  return units[type];
}

double wlmi_element_least(wlm_type type) {
  return type == WLM_F16 ? 0x1p-14 : type == WLM_F64 ? DBL_MIN : (double)FLT_MIN; /* bf16 has the exponents of f32 */
}

wlm_type wlmi_accumulator_type(wlm_type type) { return type == WLM_F64 ? WLM_F64 : WLM_F32; }
