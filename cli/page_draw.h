/* Writes the three kinds of pictures of a report as gnuplot commands. They contain no text of users; of a variant only
 * letters, digits and underscores of its family's name. */
#ifndef WLM_CLI_PAGE_DRAW_H
#define WLM_CLI_PAGE_DRAW_H

#include "cli/overview.h"

enum { WLM_DRAW_FAMILIES = 24, WLM_DRAW_FAMILY = 32 };

/* Families that win somewhere; each looks the same in every map. Those beyond the maximum share the last symbol. */
typedef struct wlmi_draw_families {
  char names[WLM_DRAW_FAMILIES][WLM_DRAW_FAMILY];
  int count;
} wlmi_draw_families;
void wlmi_draw_find_families(const wlmi_overview *overview, wlmi_draw_families *families);

/* The position of a picture's plane and the values at its edges, from which the page's script finds the case under the
 * pointer. Non-zeros per row and rows are logarithmic, CV is log(1 + CV). */
typedef struct wlmi_draw_axes {
  const char *x, *y; /* "mean", "cv" or "rows" */
  double x_least, x_most, y_least, y_most;
} wlmi_draw_axes;
#define WLM_DRAW_LEFT   0.17
#define WLM_DRAW_RIGHT  0.96
#define WLM_DRAW_BOTTOM 0.34
#define WLM_DRAW_TOP    0.96
wlmi_draw_axes wlmi_draw_map_axes(const wlmi_overview *overview);

/* Draws which family wins: the cases of one N by non-zeros per row and CV. The axes cover all cases. */
void wlmi_draw_map(const wlmi_overview *overview, const wlmi_draw_families *families, const wlmi_overview_case *cases,
                   int64_t count, wlmi_text *script);

/* Draws distributions: the share of cases in which a way stays within a factor of the best time. */
typedef struct wlmi_draw_curve {
  const char *title;
  const wlmi_ratios *ratios;
} wlmi_draw_curve;
void wlmi_draw_curves(const wlmi_draw_curve *curves, int count, const char *x_label, wlmi_text *script);

/* Draws coverage: the measured matrices, and the distance of other matrices to the nearest one. */
typedef enum wlmi_draw_plane { WLM_DRAW_ROWS_MEAN, WLM_DRAW_MEAN_CV } wlmi_draw_plane;
wlmi_draw_axes wlmi_draw_coverage_axes(wlmi_draw_plane plane);
void wlmi_draw_coverage(const wlmi_overview *overview, wlmi_draw_plane plane, wlmi_text *script);

#endif
