#include "cli/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A row has a number and an axis in its first columns. */
enum { ROWS = 16, WIDEST = 100, NARROWEST = 30, NUMBER = 7, AXIS = 3 };

typedef struct canvas {
  char cells[ROWS][WIDEST + 1];
  int width;
  double left_to_right, top, bottom; /* the largest x, and the range of y */
} canvas;

static int row_of(const canvas *c, double y) {
  const double row = (c->top - y) / (c->top - c->bottom) * (ROWS - 1);
  return row < 0 ? 0 : row > ROWS - 1 ? ROWS - 1 : (int)lround(row);
}

static int column_of(const canvas *c, double x) { return (int)lround(x / c->left_to_right * (c->width - 1)); }

/* Whether a label fits there, which may cover the line. */
static int fits(const canvas *c, int row, int at, int size) {
  if (at < 0 || at + size > c->width) return 0;
  for (int i = at; i < at + size; i++)
    if (!strchr(" -", c->cells[row][i])) return 0;
  return 1;
}

/* At the mark's right side, or at its left one, and with a blank behind it. */
static void put_label(canvas *c, int row, int column, const char *label) {
  const int size = (int)strlen(label), right = column + 1, left = column - size;
  const int is_last = right + size == c->width, is_first = left == 0;
  const int at = fits(c, row, right, size + !is_last)               ? right
                 : fits(c, row, left - !is_first, size + !is_first) ? left
                                                                    : -1;
  if (at >= 0) memcpy(&c->cells[row][at], label, (size_t)size);
}

static int are_at_one_place(const canvas *c, const wlmi_curve_point *a, const wlmi_curve_point *b) {
  return row_of(c, a->y) == row_of(c, b->y) && column_of(c, a->x) == column_of(c, b->x);
}

static void draw(canvas *c, const wlmi_curve *curve) {
  const wlmi_curve_point *points = curve->points, *end = points + curve->count;
  c->top = curve->most;
  for (const wlmi_curve_point *p = points; p < end; p++) {
    c->left_to_right = fmax(c->left_to_right, p->x);
    c->bottom = fmin(c->bottom, p->y);
  }
  for (int row = 0; row < ROWS; row++) memset(c->cells[row], ' ', (size_t)c->width);
  for (int i = 0; i < c->width; i += 2) c->cells[row_of(c, curve->line)][i] = '-';
  for (const wlmi_curve_point *p = points; p < end; p++)
    c->cells[row_of(c, p->y)][column_of(c, p->x)] = p->y > c->top ? '^' : p->mark;
  for (const wlmi_curve_point *p = end; p-- > points;) {
    const wlmi_curve_point *above = p + 1;
    while (above < end && !are_at_one_place(c, p, above)) above++;
    if (above == end) put_label(c, row_of(c, p->y), column_of(c, p->x), p->label);
  }
}

static void put_row(const canvas *c, int row, const double *number, wlmi_text *out) {
  if (number)
    wlmi_text_printf(out, "%*.2f | ", NUMBER, *number);
  else
    wlmi_text_printf(out, "%*s | ", NUMBER, "");
  wlmi_text_append(out, c->cells[row], (size_t)c->width);
  while (out->size && out->data[out->size - 1] == ' ') out->data[--out->size] = 0;
  wlmi_text_puts(out, "\n");
}

void wlmi_curve_print(const wlmi_curve *curve, wlmi_text *out) {
  canvas c = {.width = curve->columns - 1 - NUMBER - AXIS}; /* a full line would wrap on some terminals */
  if (c.width > WIDEST) c.width = WIDEST;
  if (c.width < NARROWEST) c.width = NARROWEST;
  draw(&c, curve);
  const double numbers[] = {curve->line, c.top, 0, c.bottom};
  for (int row = 0; row < ROWS; row++) {
    const double *number = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !number; i++)
      if (row_of(&c, numbers[i]) == row) number = &numbers[i];
    put_row(&c, row, number, out);
  }
  wlmi_text_printf(out, "%*s +", NUMBER, "");
  for (int i = 0; i <= c.width; i++) wlmi_text_puts(out, "-");
  char least[32], most[32];
  snprintf(least, sizeof least, "0 %s", curve->unit);
  snprintf(most, sizeof most, "%.3g %s", c.left_to_right, curve->unit);
  wlmi_text_printf(out, "\n%*s%-*s%s\n", NUMBER + AXIS, "", c.width - (int)strlen(most), least, most);
}
