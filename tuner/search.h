/* Finds the fastest of many candidates, and measures only the best ones thoroughly. */
#ifndef WLM_TUNER_SEARCH_H
#define WLM_TUNER_SEARCH_H

#include "tuner/entrant.h"

enum { WLM_PLAIN, WLM_PREPARED, WLM_KINDS }; /* whether a candidate must be prepared */

/* A round of the halving: of each kind the best `least` are timed again, and up to `most` of those that took no longer
 * than `within` times the best. */
typedef struct wlmi_search_round {
  int least, most, samples;
  double within, sample_seconds;
} wlmi_search_round;

enum {
  WLM_SEARCH_ROUNDS = 3,
  WLM_SEARCH_ENTRANTS = 24, /* of each kind at most: no round's `most` is larger */
  WLM_SEARCH_FAILURES = 16, /* that are kept to be reported */
  WLM_SEARCH_FINALISTS = WLM_KINDS * WLM_SEARCH_ENTRANTS + WLM_SEARCH_FAILURES
};
typedef struct wlmi_search_rules {
  double abandon; /* times the best: not worth a sample */
  double screening_seconds;
  double round_seconds; /* a round takes fewer samples, 3 at least in the last one, where it would take longer */
  int round_count;
  wlmi_search_round rounds[WLM_SEARCH_ROUNDS];
} wlmi_search_rules;

/* What is known of a candidate before, and of all after. */
typedef struct wlmi_screened {
  double seconds; /* 0 = to be screened; infinite where it failed */
  int kind;
  double expected; /* seconds that a model predicts; 0 = unknown */
} wlmi_screened;

typedef struct wlmi_finalist {
  int64_t i;
  wlmi_entrant entrant; /* with a failure where it was found wrong at last; then it stands behind the others */
} wlmi_finalist;

typedef struct wlmi_finals {
  wlmi_finalist list[WLM_SEARCH_FINALISTS]; /* the quickest first */
  int count;
} wlmi_finals;

/* Who is searched among. */
typedef struct wlmi_search_field {
  wlmi_device *device;
  int64_t count;
  wlmi_screened *screened; /* of each */
  void *user;
  double (*clock)(void); /* wlmi_seconds, or a test's */
  /* Sets a candidate up; an entrant that cannot be has a failure. */
  void (*enter)(void *user, int64_t i, wlmi_entrant *entrant);
  /* A wrong one gets a failure. At a glance: runs it once and tells how long that took on the clock. */
  void (*glance)(void *user, wlmi_entrant *entrant, double *seconds);
  void (*verify)(void *user, wlmi_entrant *entrant);
  /* After the last round: whether those without a failure are right again. A wrong one gets a failure. NULL = no check.
   */
  void (*check_again)(void *user, wlmi_finals *finals);
  /* After each that was screened: seconds and samples are in the entrant, or a failure. Another status than WLM_OK ends
   * the search and is returned. */
  wlm_status (*tell)(void *user, int64_t i, const wlmi_entrant *entrant);
  int (*out_of_time)(void *user); /* after at least one was screened: the others are not; NULL = all are */
  int (*in_a_hurry)(void *user);  /* after the screening: of the rounds only the last is played; NULL = all are */
} wlmi_search_field;

/* Screens those that are not known, halves the field by the rules, and leaves the finalists, verified and timed by the
 * last round, set up. While none of a kind passes, the next candidates of that kind are verified, until one does or
 * none is left. *finals is released by wlmi_finals_release also after a failure. finals = NULL: screens only. */
wlm_status wlmi_search(const wlmi_search_field *field, const wlmi_search_rules *rules, wlmi_finals *finals);
void wlmi_finals_release(wlmi_finals *finals); /* also of a zeroed one */
/* The quickest that needs no preparing, or of all; NULL where there is none. */
wlmi_finalist *wlmi_finals_best(wlmi_finals *finals, int kind);

#endif
