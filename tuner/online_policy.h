/* Which kernel the next real call runs, and what its time means: the decisions of online tuning as plain arithmetic,
 * without a clock, a device or memory of its own. */
#ifndef WLM_TUNER_ONLINE_POLICY_H
#define WLM_TUNER_ONLINE_POLICY_H

#include <stdint.h>

enum {
  WLM_ONLINE_CONTENDERS = 9, /* the first incumbent and its challengers */
  WLM_ONLINE_SAMPLES = 24,   /* the last so many of a contender are kept; so many pairs are tried at most */
  WLM_ONLINE_LEAST = 6       /* pairs before anything but giving up is decided */
};

typedef struct wlmi_online_rules {
  double share;    /* of the calls that a challenger may run, above 0 to 1/2 */
  double slowdown; /* bound of what challengers may cost, over the time of all calls */
  double abandon;  /* times the incumbent: given up */
} wlmi_online_rules;

typedef enum wlmi_online_fate {
  WLM_ONLINE_WAITING,  /* not decided on; an incumbent too */
  WLM_ONLINE_BEATEN,   /* was the incumbent, and a challenger took its place */
  WLM_ONLINE_REJECTED, /* is not better */
  WLM_ONLINE_ABANDONED /* is so slow that it need not be timed again, or could not run */
} wlmi_online_fate;

typedef struct wlmi_online_contender {
  double expected; /* its time over the first incumbent's, as far as it is known before */
  wlmi_online_fate fate;
  int64_t timed; /* the last WLM_ONLINE_SAMPLES of them, as a ring: */
  double seconds[WLM_ONLINE_SAMPLES];
  double ratios[WLM_ONLINE_SAMPLES]; /* of its pairs: its time over the incumbent's beside it */
  int pairs;
} wlmi_online_contender;

typedef struct wlmi_online {
  wlmi_online_rules rules;
  wlmi_online_contender contenders[WLM_ONLINE_CONTENDERS];
  int count, incumbent, challenger; /* challenger = count: there is none left */
  int64_t period, calls, trials, replacements;
  double first_seconds; /* of the first incumbent; 0 = not known yet */
  double lost;          /* by challengers, so far */
  int in_flight;        /* timed calls whose time was not told */
  int in_pair;          /* from its first call to its last time */
  int second_half;      /* the next call completes it */
  double half[2];       /* of the pair: the incumbent's time and the challenger's, 0 = not told */
} wlmi_online;

/* expected[0] is the first incumbent's and counts as 1. */
void wlmi_online_begin(wlmi_online *online, const wlmi_online_rules *rules, const double *expected, int count);

/* What the next call runs. The time of a timed one is told when it is known, or the call is withdrawn. */
typedef struct wlmi_online_turn {
  int contender, timed;
} wlmi_online_turn;
wlmi_online_turn wlmi_online_next(wlmi_online *online);
/* The seconds of one of the calls in flight. */
void wlmi_online_tell(wlmi_online *online, int contender, double seconds);
/* The times of the calls in flight will not be told; what a trial was expected to lose counts as lost. */
void wlmi_online_withdraw(wlmi_online *online);
/* The contender cannot run. */
void wlmi_online_exclude(wlmi_online *online, int contender);

int wlmi_online_is_over(const wlmi_online *online); /* nobody is left to be tried */

/* What the kept samples of a contender say; samples = 0 where there are none. */
typedef struct wlmi_online_summary {
  double median, spread; /* spread: (third quartile - first) / median */
  int samples;
} wlmi_online_summary;
wlmi_online_summary wlmi_online_summarise(const wlmi_online_contender *contender);

#endif
