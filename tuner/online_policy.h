/* The decisions of online tuning: which kernel the next real call runs, and what its time means. Pure arithmetic that
 * uses no timer and no device and allocates nothing. */
#pragma once

#include <stdint.h>

enum {
  WLMI_ONLINE_CONTENDERS = 9, /* the first incumbent and its challengers */
  WLMI_ONLINE_SAMPLES = 24,   /* samples kept of each contender, and the most pairs of a challenger */
  WLMI_ONLINE_LEAST = 6       /* pairs before a challenger can be accepted or rejected */
};

typedef struct wlmi_online_rules {
  double share;    /* share of the calls that a challenger may run, above 0 to 1/2 */
  double slowdown; /* bound of the time that challengers lose, relative to the time of all calls */
  double abandon;  /* a challenger is abandoned at this multiple of the incumbent's time */
} wlmi_online_rules;

typedef enum wlmi_online_fate {
  WLMI_ONLINE_WAITING,  /* not decided; also the incumbent */
  WLMI_ONLINE_BEATEN,   /* was the incumbent until a challenger replaced it */
  WLMI_ONLINE_REJECTED, /* is not better */
  WLMI_ONLINE_ABANDONED /* far too slow, or could not run */
} wlmi_online_fate;

typedef struct wlmi_online_contender {
  double expected; /* expected time relative to the first incumbent's */
  wlmi_online_fate fate;
  int64_t timed; /* the last WLMI_ONLINE_SAMPLES of them, as a ring: */
  double seconds[WLMI_ONLINE_SAMPLES];
  double ratios[WLMI_ONLINE_SAMPLES]; /* of its pairs: its time divided by the incumbent's */
  int pairs;
} wlmi_online_contender;

typedef struct wlmi_online {
  wlmi_online_rules rules;
  wlmi_online_contender contenders[WLMI_ONLINE_CONTENDERS];
  int count, incumbent, challenger; /* challenger = count: there is none left */
  int64_t period, calls, trials, replacements;
  double first_seconds; /* of the first incumbent; 0 = not known yet */
  double lost;          /* by challengers, so far */
  int in_flight;        /* timed calls whose time is not known yet */
  int in_pair;          /* from its first call to its last time */
  int second_half;      /* the next call completes it */
  double half[2];       /* of the pair: the incumbent's time and the challenger's; 0 = not known yet */
} wlmi_online;

/* expected[0] is the first incumbent's and counts as 1. */
void wlmi_online_begin(wlmi_online *online, const wlmi_online_rules *rules, const double *expected, int count);

/* What the next call runs. For a timed call the caller later passes its time, or withdraws it. */
typedef struct wlmi_online_turn {
  int contender, timed;
} wlmi_online_turn;
wlmi_online_turn wlmi_online_next(wlmi_online *online);
/* Passes the time of a call in flight. */
void wlmi_online_add_time(wlmi_online *online, int contender, double seconds);
/* Gives up the times of the calls in flight; the expected loss of their trials counts as lost. */
void wlmi_online_withdraw(wlmi_online *online);
/* The contender cannot run. */
void wlmi_online_exclude(wlmi_online *online, int contender);

int wlmi_online_is_over(const wlmi_online *online); /* no challenger is left */

/* The kept samples of a contender, summarised; samples = 0 if there are none. */
typedef struct wlmi_online_summary {
  double median, spread; /* spread: (third quartile - first) / median */
  int samples;
} wlmi_online_summary;
wlmi_online_summary wlmi_online_summarise(const wlmi_online_contender *contender);
