/* The data of a report on one device class: for each problem its cases (a matrix and an N), the best time of each, and
 * the times of the kernels that several ways of choosing would take.
 *
 * Only unprepared kernels count. All times were measured before; no device is used. */
#ifndef WLM_CLI_OVERVIEW_H
#define WLM_CLI_OVERVIEW_H

#include "select/classes.h"

typedef enum wlmi_way {
  WLM_WAY_GE_SPMM,   /* GE-SpMM's kernels by its own rule */
  WLM_WAY_FIXED,     /* the best single variant for all cases of the problem */
  WLM_WAY_RULE,      /* the built-in rules */
  WLM_WAY_BORROWED,  /* the nearest bucket, or else the rules, without the measurements of this matrix */
  WLM_WAY_PREDICTED, /* the model, trained on other matrices */
  WLM_WAYS
} wlmi_way;

extern const char *const wlmi_way_names[WLM_WAYS];

typedef struct wlmi_overview_case {
  const wlmi_case *choice;
  double best;                           /* picoseconds; not a number where nothing works unprepared */
  const wlmi_measured *chosen[WLM_WAYS]; /* NULL = the way's choice was not measured here */
} wlmi_overview_case;

typedef struct wlmi_overview_problem {
  const char *key;
  wlmi_overview_case *cases; /* by N, then matrix */
  int64_t count;
  const char *fixed; /* of WLM_WAY_FIXED; NULL = nothing works */
} wlmi_overview_problem;

typedef struct wlmi_overview {
  const wlmi_class *of;
  wlmi_overview_case *cases; /* those of all problems */
  int64_t case_count;
  wlmi_overview_problem *problems; /* the one with the most cases first */
  int64_t problem_count;
} wlmi_overview;

/* The class must outlive it. l2_bytes: the device's, for training models; 0 = no model is trained. */
wlm_status wlmi_overview_make(const wlmi_class *of, int64_t l2_bytes, wlmi_overview *overview);
void wlmi_overview_release(wlmi_overview *overview); /* also of a zeroed one */

/* A way's time divided by the best time, over the cases of a problem in which it was measured. */
typedef struct wlmi_ratios {
  double *sorted; /* rising, 1 or more */
  int64_t count;
  int64_t cases; /* cases in which any candidate works */
  double mean;   /* geometric; not a number where count is 0 */
  const wlmi_overview_case *worst;
} wlmi_ratios;
wlm_status wlmi_ratios_make(const wlmi_overview_problem *problem, wlmi_way way, wlmi_ratios *ratios);
void wlmi_ratios_release(wlmi_ratios *ratios);

/* The winner of a case that needs no preparing; NULL = none. */
const wlmi_measured *wlmi_overview_winner(const wlmi_overview_case *c);

/* ---- overview_choose.c: steps of wlmi_overview_make ---- */

/* The measured candidate of that name that needs no preparing; NULL = none. */
const wlmi_measured *wlmi_overview_find(const wlmi_case *choice, const char *variant);
/* Fills the ways behind WLM_WAY_FIXED. */
wlm_status wlmi_overview_choose(wlmi_overview *overview, int64_t l2_bytes);

#endif
