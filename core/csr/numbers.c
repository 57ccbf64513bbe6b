/* Takes the first 19 digits as an integer, rounds it to double and scales it by powers of ten that double holds
 * exactly. Each step errs by at most half a unit in the last place, so the double is within a few units of the number.
 * Rounding it to float gives the nearest float, unless the double lies that close to the middle between two floats.
 * Those numbers, and numbers near the ends of float's range, are left to strtof. */
#include "core/csr/numbers.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 19, EXACT_POWER = 22, MAX_EXPONENT = 3 * EXACT_POWER, DOUBT = 16 };
/* Larger than the number of digits of any line, so digits cannot bring a capped exponent back into range. */
enum { EXPONENT_CAP = 100000000 };

static int is_digit(char c) { return (unsigned char)(c - '0') < 10; }

const char *wlmi_parse_int64(const char *text, int64_t *value) {
  int negative = *text == '-';
  int64_t result = 0;
  text += negative || *text == '+';
  if (!is_digit(*text)) return NULL;
  for (; is_digit(*text); text++)
    if (__builtin_mul_overflow(result, 10, &result) || __builtin_add_overflow(result, *text - '0', &result))
      return NULL;
  *value = negative ? -result : result;
  return text;
}

typedef struct decimal {
  uint64_t mantissa; /* the first MAX_DIGITS digits */
  int digits;        /* of the mantissa, without leading zeros */
  int exponent;      /* of ten */
} decimal;

/* `step` is added to the exponent for each digit of the mantissa: 0 before the point, -1 after it. */
static const char *read_digits(const char *text, decimal *d, int step) {
  for (; is_digit(*text); text++) {
    int taken = d->digits < MAX_DIGITS;
    if (taken) d->mantissa = d->mantissa * 10 + (uint64_t)(*text - '0');
    d->digits += taken && d->mantissa;
    d->exponent += taken ? step : step + 1;
  }
  return text;
}

static const char *read_exponent(const char *text, decimal *d) {
  int exponent = 0, negative;
  if ((*text | 0x20) != 'e') return text;
  negative = *++text == '-';
  text += negative || *text == '+';
  if (!is_digit(*text)) return NULL;
  for (; is_digit(*text); text++)
    if (exponent < EXPONENT_CAP) exponent = exponent * 10 + (*text - '0');
  d->exponent += negative ? -exponent : exponent;
  return text;
}

static const char *read_decimal(const char *text, decimal *d) {
  const char *start = text;
  text = read_digits(text, d, 0);
  int seen = text > start;
  if (*text == '.') {
    const char *fraction = ++text;
    text = read_digits(text, d, -1);
    seen |= text > fraction;
  }
  return seen ? read_exponent(text, d) : NULL;
}

static double scale(double x, int exponent) {
  static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  for (; exponent > EXACT_POWER; exponent -= EXACT_POWER) x *= powers[EXACT_POWER];
  for (; exponent < -EXACT_POWER; exponent += EXACT_POWER) x /= powers[EXACT_POWER];
  return exponent < 0 ? x / powers[-exponent] : x * powers[exponent];
}

/* 1 where the result is certain to be the nearest float. */
static int convert_fast(const decimal *d, float *value) {
  uint64_t bits;
  *value = 0.0f;
  if (d->mantissa == 0) return 1;
  if (abs(d->exponent) > MAX_EXPONENT) return 0;
  double x = scale((double)d->mantissa, d->exponent);
  if (x < (double)FLT_MIN || x >= (double)FLT_MAX) return 0;
  memcpy(&bits, &x, sizeof bits);
  *value = (float)x;
  /* of the 29 bits that float does not have: not within DOUBT of the middle */
  return llabs((int64_t)(bits & 0x1FFFFFFF) - 0x10000000) > DOUBT;
}

const char *wlmi_parse_float(const char *text, locale_t c_locale, float *value) {
  const char *start = text;
  decimal d = {0, 0, 0};
  int negative = *text == '-';
  text += negative || *text == '+';
  text = read_decimal(text, &d);
  if (!text) return NULL;
  if (convert_fast(&d, value)) {
    if (negative) *value = -*value;
    return text;
  }
  *value = strtof_l(start, NULL, c_locale);
  return isfinite(*value) ? text : NULL;
}
