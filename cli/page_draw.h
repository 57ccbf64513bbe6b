/* The three kinds of pictures of a report, as gnuplot commands. No text of a user's is in them: of a variant only
 * letters, digits and underscores of its family's name. */
#ifndef WLM_CLI_PAGE_DRAW_H
#define WLM_CLI_PAGE_DRAW_H

#include "cli/survey.h"

enum { WLM_DRAW_FAMILIES = 24, WLM_DRAW_FAMILY = 32 };

/* Families that win somewhere; a family looks the same in every map. Further ones share the last place. */
typedef struct wlm_draw_families {
  char names[WLM_DRAW_FAMILIES][WLM_DRAW_FAMILY];
  int count;
} wlm_draw_families;
void wlm_draw_find_families(const wlm_survey *survey, wlm_draw_families *families);

/* Which family wins where: cases of one N by non-zeros a row and CV. Axes are those of all cases. */
void wlm_draw_map(const wlm_survey *survey, const wlm_draw_families *families, const wlm_survey_case *cases,
                  int64_t count, wlm_text *script);

/* Over how many of the cases some ways stay within which factor of the best time. */
typedef struct wlm_draw_curve {
  const char *title;
  const wlm_ratios *ratios;
} wlm_draw_curve;
void wlm_draw_curves(const wlm_draw_curve *curves, int count, const char *x_label, wlm_text *script);

/* Which matrices were measured, and how far from the nearest one any other lies. */
typedef enum wlm_draw_plane { WLM_DRAW_ROWS_MEAN, WLM_DRAW_MEAN_CV } wlm_draw_plane;
void wlm_draw_coverage(const wlm_survey *survey, wlm_draw_plane plane, wlm_text *script);

#endif
