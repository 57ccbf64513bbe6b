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
void wlmi_draw_coverage(const wlmi_survey *survey, wlmi_draw_plane plane, wlmi_text *script);

#endif
