/* The 16-bit types: conversions of core/problem/element.h and of the kernels (templates/prelude/half.h), for all 65,536
 * values and at all points where rounding changes, against an independent definition in float64. */
#include "core/problem/element.h"
#include "core/problem/spec.h"
#include "support/test.h"

#define WLM_FN static inline
#include "templates/prelude/half.h"

typedef struct half {
  wlm_type type;
  int exponent_bits, fraction_bits;
  float (*widen)(unsigned short bits);
  unsigned short (*narrow)(float value);
} half;

static const half halves[] = {{WLM_F16, 5, 10, wlm_f16_to_f32, wlm_f32_to_f16},
                              {WLM_BF16, 8, 7, wlm_bf16_to_f32, wlm_f32_to_bf16}};
enum { HALVES = sizeof halves / sizeof *halves };

static unsigned short infinity_of(const half *h) {
  return (unsigned short)(((1u << h->exponent_bits) - 1) << h->fraction_bits);
}

/* The value by IEEE 754: sign, exponent and fraction. */
static double value_of(const half *h, unsigned bits) {
  const unsigned fraction = bits % (1u << h->fraction_bits), exponent = (bits & 0x7fff) >> h->fraction_bits;
  const double bias = (double)((1 << (h->exponent_bits - 1)) - 1), sign = bits >> 15 ? -1 : 1;
  const double part = (double)fraction / (double)(1 << h->fraction_bits);
  if (exponent == (1u << h->exponent_bits) - 1) return fraction ? (double)NAN : sign * (double)INFINITY;
  return exponent ? sign * (1 + part) * pow(2, (double)exponent - bias) : sign * part * pow(2, 1 - bias);
}

static int same(double a, double b) {
  return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && signbit(a) == signbit(b);
}

TEST(every_half_widens) {
  for (const half *h = halves; h < halves + HALVES; h++)
    for (unsigned bits = 0; bits < 65536; bits++) {
      const unsigned short stored = (unsigned short)bits;
      assert_true(same(wlmi_element_get(h->type, &stored, 0), value_of(h, bits)));
      assert_true(same((double)h->widen(stored), value_of(h, bits)));
    }
}

static void expect(const half *h, double value, unsigned short expected) {
  unsigned short put;
  wlmi_element_put(h->type, &put, 0, value);
  if (put != expected) fail_msg("%s of %a is %04x, not %04x", wlmi_type_name(h->type), value, put, expected);
  const float narrow = (float)value;
  if ((double)narrow == value && h->narrow(narrow) != expected)
    fail_msg("a kernel's %s of %a is %04x, not %04x", wlmi_type_name(h->type), value, h->narrow(narrow), expected);
}

/* For each half-precision number: the number itself, the midpoint to the next one, which rounds to even, and the
 * floats beside the midpoint. Infinity begins at the number behind the largest. */
TEST(every_rounding) {
  for (const half *h = halves; h < halves + HALVES; h++)
    for (unsigned bits = 0; bits < infinity_of(h); bits++) {
      const double low = value_of(h, bits), step = low - value_of(h, bits ? bits - 1 : 1);
      double high = value_of(h, bits + 1);
      if (isinf(high)) high = low + step;
      const double middle = low + (high - low) / 2;
      const unsigned short even = (unsigned short)(bits + bits % 2);
      for (int negative = 0; negative < 2; negative++) {
        const double sign = negative ? -1 : 1;
        const unsigned short mark = negative ? 0x8000 : 0;
        expect(h, sign * low, (unsigned short)(bits | mark));
        expect(h, sign * middle, even | mark);
        expect(h, sign * (double)nextafterf((float)middle, 0), (unsigned short)(bits | mark));
        expect(h, sign * (double)nextafterf((float)middle, INFINITY), (unsigned short)((bits + 1) | mark));
        expect(h, sign * nextafter(middle, 0), (unsigned short)(bits | mark));
        expect(h, sign * nextafter(middle, (double)INFINITY), (unsigned short)((bits + 1) | mark));
      }
    }
}

TEST(special_values) {
  for (const half *h = halves; h < halves + HALVES; h++) {
    expect(h, (double)INFINITY, infinity_of(h));
    expect(h, -(double)INFINITY, infinity_of(h) | 0x8000);
    expect(h, 0x1.fffffep127, infinity_of(h));
    expect(h, 1e300, infinity_of(h));
    expect(h, 1e-300, 0);
    expect(h, -0x1p-149, 0x8000);
    expect(h, -0.0, 0x8000);
    unsigned short put;
    wlmi_element_put(h->type, &put, 0, (double)NAN);
    assert_true((put & 0x7fff) > infinity_of(h));
    for (unsigned k = 0; k < 23; k++) /* a NaN stays a NaN, whichever bit of its fraction is set */
      assert_true((h->narrow(wlm_from_bits(0x7f800000u | 1u << k)) & 0x7fff) > infinity_of(h));
    assert_true(wlmi_element_round(h->type, 1 + wlmi_element_unit(h->type)) == 1);
    assert_true(wlmi_element_round(h->type, 1 + 1.01 * wlmi_element_unit(h->type)) > 1);
    assert_true(wlmi_element_least(h->type) == value_of(h, 1u << h->fraction_bits));
  }
}
