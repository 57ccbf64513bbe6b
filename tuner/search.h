/* Finds the quickest of many candidates without a long look at each of them. */
#ifndef WLM_TUNER_SEARCH_H
#define WLM_TUNER_SEARCH_H

#include "tuner/entrant.h"

enum { WLM_PLAIN, WLM_PREPARED, WLM_KINDS }; /* whether a candidate must be prepared */

/* A round of the halving: of each kind the best `least` are timed again, and up to `most` of those that took no longer
 * than `within` times the best. */
typedef struct wlm_search_round {
  int least, most, samples;
  double within, sample_seconds;
} wlm_search_round;

enum { WLM_SEARCH_ROUNDS = 3, WLM_SEARCH_ENTRANTS = 24 }; /* of each kind at most */
typedef struct wlm_search_rules {
  double abandon; /* times the best: not worth a sample */
  double screening_seconds;
  double round_seconds; /* a round takes fewer samples, 3 at least in the last one, where it would take longer */
  int round_count;
  wlm_search_round rounds[WLM_SEARCH_ROUNDS];
} wlm_search_rules;

/* What is known of a candidate before, and of all after. */
typedef struct wlm_screened {
  double seconds; /* 0 = to be screened; infinite where it failed */
  int kind;
} wlm_screened;

/* Who is searched among. */
typedef struct wlm_search_field {
  wlm_device *device;
  int64_t count;
  wlm_screened *screened; /* of each */
  void *user;
  double (*clock)(void); /* wlm_seconds, or a test's */
  /* Sets a candidate up; an entrant that cannot be has a failure. */
  void (*enter)(void *user, int64_t i, wlm_entrant *entrant);
  /* A wrong one gets a failure. At a glance: runs it once and tells how long that took on the clock. */
  void (*glance)(void *user, wlm_entrant *entrant, double *seconds);
  void (*verify)(void *user, wlm_entrant *entrant);
  /* After each that was screened: seconds and samples are in the entrant, or a failure. Another status than WLM_OK ends
   * the search and is returned. */
  wlm_status (*tell)(void *user, int64_t i, const wlm_entrant *entrant);
  int (*out_of_time)(void *user); /* after at least one was screened: the others are not */
  int (*in_a_hurry)(void *user);  /* after the screening: of the rounds only the last is played; NULL = all are */
} wlm_search_field;

typedef struct wlm_finalist {
  int64_t i;
  wlm_entrant entrant; /* with a failure where it was found wrong at last; then it stands behind the others */
} wlm_finalist;

typedef struct wlm_finals {
  wlm_finalist list[WLM_KINDS * WLM_SEARCH_ENTRANTS]; /* the quickest first */
  int count;
} wlm_finals;

/* Screens those that are not known, halves the field by the rules, and leaves the finalists, verified and timed by the
 * last round, set up; *finals is released by wlm_finals_release also after a failure. finals = NULL: screens only. */
wlm_status wlm_search(const wlm_search_field *field, const wlm_search_rules *rules, wlm_finals *finals);
void wlm_finals_release(wlm_finals *finals); /* also of a zeroed one */
/* The quickest that needs no preparing, or of all; NULL where there is none. */
wlm_finalist *wlm_finals_best(wlm_finals *finals, int kind);

#endif
