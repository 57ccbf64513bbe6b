/* State that the steps of a selection share; only for the files of select/. */
#pragma once

#include "select/model.h"
#include "select/rules.h"
#include "select/select.h"

/* The problem for which cases are looked up: that of the request or a simpler one, with its model. */
typedef struct wlmi_lookup {
  const char *problem;
  const wlmi_model *model; /* NULL = none for such problems */
  wlmi_model_case model_case;
} wlmi_lookup;

/* A problem whose kernels are like those of the request. */
typedef struct wlmi_simpler {
  char problem[WLMI_SPEC_KEY], like[WLMI_LIKE]; /* ", with one head": what explain shows if it decided */
  int kind; /* kind_of in select.c; a model decides before measurements of another kind */
} wlmi_simpler;

static inline int wlmi_is_estimated(const wlmi_request *request) { return request->use != WLMI_USE_MEASURED; }

/* The most entries that one step adds; the rest is for the rules and the built-in kernel. */
enum { WLMI_STEP_ENTRIES = 8 };
/* The most thin cases that are ignored before the remaining steps use no cases; the most simpler problems of one. */
enum { WLMI_PASSED_OVER = 4, WLMI_SIMPLER = 13 };

typedef struct wlmi_selection {
  const wlmi_snapshot *snapshot;
  const wlmi_request *request;
  const wlm_stats *stats;
  const wlmi_spec *spec;
  int64_t n, calls;
  wlmi_simpler simpler[WLMI_SIMPLER]; /* the nearest first */
  int simpler_count;
  wlmi_lookup lookup;
  const wlmi_case *
      same_matrix[1 + WLMI_SIMPLER]; /* cases of this very matrix on this device class, for each problem; NULL = none */
  const wlmi_case *passed_over[WLMI_PASSED_OVER]; /* thin cases */
  int passed_over_count;
  const wlmi_candidate *candidates; /* all candidates except those that failed */
  int64_t candidate_count;
  int listed;
  wlmi_candidate *kept; /* the list, if it is not the caller's */
  int out_of_memory;    /* 1 = memory ran out, so nothing is chosen */
} wlmi_selection;

/* ---- valid.c: which variants may be chosen ----------------------------------------------------------- */

int wlmi_may_prepare(const wlmi_selection *s);
/* Whether the variant is valid for the problem, needs no preparing (unless may_prepare), and did not fail on this very
 * matrix. */
int wlmi_is_allowed(const wlmi_selection *s, const wlmi_variant *variant, int may_prepare);
int wlmi_failed_here(const wlmi_selection *s, const wlmi_variant *variant); /* on this very matrix */
/* Whether the variant gave a wrong result on this very matrix. */
int wlmi_was_wrong(const wlmi_selection *s, const wlmi_variant *variant);
/* Writes why not, at most WLMI_REASON characters. */
void wlmi_explain_refusal(const wlmi_selection *s, const wlmi_variant *variant, const char *name, char *reason);
/* Counts a variant that may not be chosen and keeps the first one. */
void wlmi_refuse(const wlmi_selection *s, const wlmi_variant *variant, const char *name, wlmi_decision *decision);
/* Fills the list of candidates, once. */
void wlmi_list_candidates(wlmi_selection *s);
void wlmi_selection_release(wlmi_selection *s);
/* Whether the case has a measurement of the variant, also a failed one. */
int wlmi_case_has(const wlmi_case *c, const wlmi_variant *variant);
int64_t wlmi_failure_count(const wlmi_selection *s); /* on this very matrix */
void wlmi_describe_failures(const wlmi_selection *s, wlmi_decision *decision);
void wlmi_copy_name(char *to, size_t capacity, const char *from);
/* Appends an entry, unless it is there already or there is no room (the last entry is kept for the built-in kernel). */
void wlmi_add_entry(wlmi_decision *decision, const wlmi_variant *variant, double seconds, wlmi_step step,
                    const char *reason);

/* ---- by_case.c: by measurements ------------------------------------------------------------------------ */

int wlmi_case_serves(const wlmi_selection *s, const wlmi_case *c); /* whether it has a candidate that may be chosen */
void wlmi_select_by_case(const wlmi_selection *s, const wlmi_case *c, wlmi_decision *decision); /* a case that serves */

/* ---- lookup.c: the model of a problem ------------------------------------------------------------------- */

wlmi_lookup wlmi_lookup_make(const wlmi_selection *s, const char *problem);
int wlmi_model_is_near(const wlmi_lookup *lookup);
/* Seconds that a model which may decide predicts; 0 = there is none, or it does not know the variant. */
double wlmi_predict_variant(wlmi_selection *s, const wlmi_variant *variant);

/* ---- by_model.c: by predictions ------------------------------------------------------------------------ */

int wlmi_select_by_model(wlmi_selection *s, wlmi_decision *decision);
/* Makes the best predictions the decision. `plain`: seconds of the best unprepared candidate. */
void wlmi_describe_predictions(const wlmi_selection *s, const wlmi_prediction *best, int count, double plain,
                               const char *reason, wlmi_decision *decision);
/* Adds the model's predictions for everything that explain shows; nothing if no candidates were listed so far. */
void wlmi_add_predictions(wlmi_selection *s, wlmi_decision *decision);

/* ---- by_rule.c: by the built-in rules ------------------------------------------------------------------ */

/* The first rule that holds and whose variant may be chosen; NULL if there is none. */
const wlmi_rule *wlmi_rule_for(const wlmi_selection *s, wlmi_variant *variant);
int wlmi_select_by_rule(wlmi_selection *s, wlmi_decision *decision);
/* Appends a few valid variants of the rules to the entries, for kernels that cannot be loaded. Leaves out rules that
 * prepare, so that kernels of other families follow a prepared choice. */
void wlmi_add_rule_entries(wlmi_selection *s, wlmi_decision *decision);

/* For WLMI_USE_SCATTER: of the kernels that walk A itself, the one that fits best; nothing if there is none. */
void wlmi_select_scatter(const wlmi_request *request, wlmi_decision *decision);

/* ---- estimated.c: where only the size of the matrix is known -------------------------------------------- */

/* The same size with moderately skewed rows; steps other than the model use these stats. */
wlm_stats wlmi_moderate_stats(const wlm_stats *estimated);
/* Replaces wlmi_select_by_model for estimated stats. */
int wlmi_select_estimated(wlmi_selection *s, wlmi_decision *decision);

/* ---- snapshot.c, nearest.c ------------------------------------------------------------------------------ */

/* The pin for this matrix, or otherwise for its bucket; NULL if there is none. */
const wlmi_pin *wlmi_pin_find(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n);
/* How far the case's matrix is: 0 = it is this one; infinite for another N. */
double wlmi_case_distance(const wlmi_selection *s, const wlmi_case *c);
/* The nearest case: the nearest matrix within WLMI_NEAR, and of these the nearest problem. NULL if there is none.
 * `distance`: of the case's problem; infinite = the case may not decide. */
typedef double (*wlmi_problem_distance_fn)(wlmi_selection *s, const wlmi_case *c, void *user);
const wlmi_case *wlmi_nearest_case(wlmi_selection *s, wlmi_problem_distance_fn distance, void *user);
/* Of the tuned messages with the types and features of this one (a problem key) the one that moves the most similar
 * bytes, among those that were measured on this matrix, or else on the most similar one. Its problem key; NULL = there
 * is none, or memory ran out. */
const char *wlmi_nearest_message(wlmi_selection *s, const char *problem);
/* Writes the nearest cases of the same problem class to the decision. */
void wlmi_describe_similar(const wlmi_selection *s, wlmi_decision *decision);

static inline int wlmi_same_fingerprint(const wlm_stats *a, const wlm_stats *b) {
  return a->fingerprint[0] == b->fingerprint[0] && a->fingerprint[1] == b->fingerprint[1] &&
         (a->fingerprint[0] || a->fingerprint[1]);
}
