/* Draws points above an axis, and a horizontal line, as text of ASCII. */
#pragma once

#include "core/base/text.h"

enum { WLMI_CURVE_LABEL = 24 };

typedef struct wlmi_curve_point {
  double x, y; /* x is above 0 */
  char mark;
  char label[WLMI_CURVE_LABEL]; /* beside the mark, where there is room */
} wlmi_curve_point;

typedef struct wlmi_curve {
  const wlmi_curve_point *points; /* those that matter most come last: their marks hide others */
  int64_t count;
  double line, most; /* y of the line, and of the top; points above the top get the mark ^ */
  const char *unit;  /* of x */
  int columns;       /* of the screen */
} wlmi_curve;

void wlmi_curve_print(const wlmi_curve *curve, wlmi_text *out);
