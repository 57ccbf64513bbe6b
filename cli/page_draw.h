/* The three kinds of pictures of a report, as gnuplot commands. No text of a user's is in them: of a variant only
 * letters, digits and underscores of its family's name. */
#ifndef WLM_CLI_PAGE_DRAW_H
#define WLM_CLI_PAGE_DRAW_H

#include "cli/survey.h"

enum { WLM_DRAW_FAMILIES = 24, WLM_DRAW_FAMILY = 32 };

/* Families that win somewhere; a family looks the same in every map. Further ones share the last place. */
typedef struct wlmi_draw_families {
  char names[WLM_DRAW_FAMILIES][WLM_DRAW_FAMILY];
  int count;
} wlmi_draw_families;
void wlmi_draw_find_families(const wlmi_survey *survey, wlmi_draw_families *families);

/* Where the plane of a picture lies in it, and what its edges stand for: the page's script finds the case under the
 * pointer by that. Non-zeros a row and rows are logarithmic, CV is log(1 + CV). */
typedef struct wlmi_draw_axes {
  const char *x, *y; /* "mean", "cv" or "rows" */
  double x_least, x_most, y_least, y_most;
} wlmi_draw_axes;
#define WLM_DRAW_LEFT   0.17
#define WLM_DRAW_RIGHT  0.96
#define WLM_DRAW_BOTTOM 0.34
#define WLM_DRAW_TOP    0.96
wlmi_draw_axes wlmi_draw_map_axes(const wlmi_survey *survey);

/* Which family wins where: cases of one N by non-zeros a row and CV. Axes are those of all cases. */
void wlmi_draw_map(const wlmi_survey *survey, const wlmi_draw_families *families, const wlmi_survey_case *cases,
                   int64_t count, wlmi_text *script);

/* Over how many of the cases some ways stay within which factor of the best time. */
typedef struct wlmi_draw_curve {
  const char *title;
  const wlmi_ratios *ratios;
} wlmi_draw_curve;
void wlmi_draw_curves(const wlmi_draw_curve *curves, int count, const char *x_label, wlmi_text *script);

/* Which matrices were measured, and how far from the nearest one any other lies. */
typedef enum wlmi_draw_plane { WLM_DRAW_ROWS_MEAN, WLM_DRAW_MEAN_CV } wlmi_draw_plane;
wlmi_draw_axes wlmi_draw_coverage_axes(wlmi_draw_plane plane);
void wlmi_draw_coverage(const wlmi_survey *survey, wlmi_draw_plane plane, wlmi_text *script);

#endif
