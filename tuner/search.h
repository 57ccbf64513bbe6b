/* Finds the fastest of many candidates, and measures only the best ones thoroughly. */
#pragma once

#include "tuner/method.h"
#include "tuner/timed.h"

/* A round of successive halving. For each kind it times the best `least` again, and more, up to `most`, if they took at
 * most `within` times the best. */
typedef struct wlmi_search_round {
  int least, most, samples;
  double within, sample_seconds;
} wlmi_search_round;

enum {
  WLMI_SEARCH_ROUNDS = 3,
  WLMI_SEARCH_METHODS = 24,  /* the largest `most` of a round */
  WLMI_SEARCH_FAILURES = 16, /* failures that are kept to be reported */
  WLMI_SEARCH_FINALISTS = WLMI_KINDS * WLMI_SEARCH_METHODS + WLMI_SEARCH_FAILURES
};
typedef struct wlmi_search_rules {
  double abandon; /* a candidate that takes this many times the best gets no sample */
  double screening_seconds;
  double round_seconds; /* if a round would take longer, it takes fewer samples, in the last round at least 3 */
  int round_count;
  wlmi_search_round rounds[WLMI_SEARCH_ROUNDS];
} wlmi_search_rules;

typedef struct wlmi_finals {
  wlmi_method list[WLMI_SEARCH_FINALISTS]; /* the fastest first; then those that the full comparison found wrong */
  int count;
  int repeats; /* of the last round, because the machine was busy; the calmest one counts, */
  double lost; /* in which the calling thread did not run for this share; no spread is less. 0 = it was calm */
} wlmi_finals;

/* The candidates, and the functions by which the search runs them. */
typedef struct wlmi_search_field {
  wlmi_device *device;
  int64_t count;
  wlmi_timed *candidates; /* those without a time are screened */
  void *user;
  double (*clock)(void); /* wlmi_seconds, or the fake clock of a test */
  /* Sets a candidate up; one that cannot be set up gets a failure. */
  void (*enter)(void *user, int64_t i, wlmi_method *method);
  /* Run it once and compare the result; a wrong one gets a failure. glance compares a few rows only; *seconds is the
   * time of the call. */
  void (*glance)(void *user, wlmi_method *method, double *seconds);
  void (*verify)(void *user, wlmi_method *method);
  /* Called after the last round: checks again those without a failure; a wrong one gets a failure. NULL = no check. */
  void (*check_again)(void *user, wlmi_finals *finals);
  /* Called after each screening; the method has seconds and samples, or a failure. A status other than WLM_OK ends the
   * search and is returned. */
  wlm_status (*report)(void *user, const wlmi_method *method);
  int (*out_of_time)(void *user); /* asked once one candidate was screened: non-zero ends the screening; NULL = all are
                                   * screened */
  int (*in_a_hurry)(void *user);  /* asked after the screening: non-zero = only the last round is run; NULL = all are */
} wlmi_search_field;

/* Screens the candidates without a time, then runs the rounds. The finalists stay set up, verified and timed by the
 * last round. While none of a kind passes, the next candidates of that kind are verified, until one passes or none is
 * left. Release *finals with wlmi_finals_release, also after an error. finals = NULL: screening only. */
wlm_status wlmi_search(const wlmi_search_field *field, const wlmi_search_rules *rules, wlmi_finals *finals);
void wlmi_finals_release(wlmi_finals *finals); /* also of a zeroed one */
/* The fastest unprepared finalist, or the fastest of all; NULL if there is none. */
wlmi_method *wlmi_finals_best(wlmi_finals *finals, int kind);
