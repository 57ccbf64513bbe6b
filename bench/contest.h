/* Finds the fastest kernel for one product on one matrix, and times it beside baselines. */
#ifndef WLM_BENCH_CONTEST_H
#define WLM_BENCH_CONTEST_H

#include "bench/suite.h"
#include "tuner/search.h"

/* Is not moved once created: the verifier knows where its operands are. */
typedef struct wlmi_contest {
  wlm_context *context;
  wlmi_operands operands;
  wlmi_verifier *verifier;
  int samples; /* of every reported time */
  uint64_t seed;
  int64_t candidates; /* how many were looked at */
  wlmi_text failures; /* members of a JSON object, the variant and why it failed */
} wlmi_contest;

/* The matrix is the case's own, or another on the same device. */
wlm_status wlmi_contest_create(const wlmi_bench_case *bench, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_contest *contest);
/* Another problem beside a first one, with the operands of that where they are alike (wlmi_operands_create_beside). The
 * first is released later. */
wlm_status wlmi_contest_create_beside(const wlmi_contest *first, const wlm_matrix *matrix, const wlm_problem *problem,
                                      wlmi_contest *contest);
void wlmi_contest_release(wlmi_contest *contest); /* also of a zeroed one; entrants are released before */

/* Looks at these candidates, of which the best `finalists` of each kind are checked and timed again. What the looks
 * said is left in `screened`, list->count of them that are zero at first. *finals is released also after a failure. */
wlm_status wlmi_contest_search(wlmi_contest *contest, const wlmi_candidate_list *list, int finalists,
                               wlmi_screened *screened, wlmi_finals *finals);

/* The quickest candidates that are right. Their times are not yet ones to report. */
typedef struct wlmi_winners {
  wlmi_entrant plain;    /* of those that need no preparing */
  wlmi_entrant prepared; /* of all, where one that needs it wins; otherwise zeroed */
} wlmi_winners;
wlm_status wlmi_contest_winners(wlmi_contest *contest, wlmi_winners *winners); /* released by wlmi_entrant_release */
/* Only the first of them. */
wlm_status wlmi_contest_winner(wlmi_contest *contest, wlmi_entrant *winner);

/* A variant by name, or (NULL) the dispatcher's choice; an entrant that is wrong has a failure. */
void wlmi_contest_enter(wlmi_contest *contest, const char *variant, wlmi_entrant *entrant);
/* Baselines over the contest's operands must compute the same product, or the comparison would mean nothing; one that
 * does not has a failure. */
void wlmi_contest_check(wlmi_contest *contest, wlmi_entrant *baselines, int count);

void wlmi_contest_note(wlmi_contest *contest, const wlmi_entrant *failed); /* among the failures */
void wlmi_contest_put_failures(const wlmi_contest *contest, const char *key, wlmi_text *line);

/* The times that are reported: side by side, with the same number of calls in every sample, so many that the quickest
 * fills a millisecond. */
wlm_status wlmi_contest_time(wlmi_device *device, wlmi_entrant *entrants, int count, int samples, int64_t *calls);

#endif
