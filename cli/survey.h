/* What a database knows of one device class, made ready to be looked at: for each problem its cases (a matrix and an
 * N), the best time of each, and what several ways of choosing would have taken there.
 *
 * Only calls that need no preparing count. Everything is of measured times; no device is asked. */
#ifndef WLM_CLI_SURVEY_H
#define WLM_CLI_SURVEY_H

#include "select/classes.h"

typedef enum wlmi_way {
  WLM_WAY_GE_SPMM,   /* GE-SpMM's kernels by its own rule */
  WLM_WAY_FIXED,     /* one variant for all cases of the problem, the best such one */
  WLM_WAY_RULE,      /* the built-in table */
  WLM_WAY_BORROWED,  /* the nearest bucket, else the table, had this matrix never been measured */
  WLM_WAY_PREDICTED, /* the model, trained on other matrices */
  WLM_WAYS
} wlmi_way;

extern const char *const wlmi_way_names[WLM_WAYS];

typedef struct wlmi_survey_case {
  const wlmi_case *choice;
  double best;                           /* picoseconds; not a number where nothing works unprepared */
  const wlmi_measured *chosen[WLM_WAYS]; /* NULL = what that way names was not measured here */
} wlmi_survey_case;

typedef struct wlmi_survey_problem {
  const char *key;
  wlmi_survey_case *cases; /* by N, then matrix */
  int64_t count;
  const char *fixed; /* of WLM_WAY_FIXED; NULL = nothing works */
} wlmi_survey_problem;

typedef struct wlmi_survey {
  const wlmi_class *of;
  wlmi_survey_case *cases; /* those of all problems */
  int64_t case_count;
  wlmi_survey_problem *problems; /* the one with the most cases first */
  int64_t problem_count;
} wlmi_survey;

/* The class must outlive it. l2_bytes: of the device, for models to train; 0 = none is. */
wlm_status wlmi_survey_make(const wlmi_class *of, int64_t l2_bytes, wlmi_survey *survey);
void wlmi_survey_release(wlmi_survey *survey); /* also of a zeroed one */
/* Fills the ways behind WLM_WAY_FIXED; a step of wlmi_survey_make. */
wlm_status wlmi_survey_choose(wlmi_survey *survey, int64_t l2_bytes);

/* How often a way's time is the best time, over the cases of a problem that know it. */
typedef struct wlmi_ratios {
  double *sorted; /* rising, 1 or more */
  int64_t count;
  int64_t cases; /* in which anything works */
  double mean;   /* geometric; not a number where count is 0 */
  const wlmi_survey_case *worst;
} wlmi_ratios;
wlm_status wlmi_ratios_make(const wlmi_survey_problem *problem, wlmi_way way, wlmi_ratios *ratios);
void wlmi_ratios_release(wlmi_ratios *ratios);

/* The measured candidate of that name that needs no preparing; NULL = none. */
const wlmi_measured *wlmi_survey_find(const wlmi_case *choice, const char *variant);
/* The winner of a case that needs no preparing; NULL = none. */
const wlmi_measured *wlmi_survey_winner(const wlmi_survey_case *c);

#endif
