/* One product on one matrix, and who computes it quickest. */
#ifndef WLM_BENCH_CONTEST_H
#define WLM_BENCH_CONTEST_H

#include "bench/case.h"
#include "bench/entrant.h"
#include "tuner/search.h"

/* Is not moved once created: the verifier knows where its operands are. */
typedef struct wlm_contest {
  wlm_context *context;
  wlm_operands operands;
  wlm_verifier *verifier;
  int samples; /* of every reported time */
  uint64_t seed;
  int64_t candidates; /* how many were looked at */
  wlm_text failures;  /* members of a JSON object, the variant and why it failed */
} wlm_contest;

/* The matrix is the case's own, or another on the same device. */
wlm_status wlm_contest_create(const wlm_bench_case *bench, const wlm_matrix *matrix, const wlm_problem *problem,
                              wlm_contest *contest);
/* Another problem beside a first one, with the operands of that where they are alike (wlm_operands_create_beside). The
 * first is released later. */
wlm_status wlm_contest_create_beside(const wlm_contest *first, const wlm_matrix *matrix, const wlm_problem *problem,
                                     wlm_contest *contest);
void wlm_contest_release(wlm_contest *contest); /* also of a zeroed one; entrants are released before */

/* Looks at these candidates, of which the best `finalists` of each kind are checked and timed again. What the looks
 * said is left in `screened`, names->count of them that are zero at first. *finals is released also after a failure. */
wlm_status wlm_contest_search(wlm_contest *contest, const wlm_names *names, int finalists, wlm_screened *screened,
                              wlm_finals *finals);

/* The quickest candidates that are right. Their times are not yet ones to report. */
typedef struct wlm_winners {
  wlm_entrant plain;    /* of those that need no preparing */
  wlm_entrant prepared; /* of all, where one that needs it wins; otherwise zeroed */
} wlm_winners;
wlm_status wlm_contest_winners(wlm_contest *contest, wlm_winners *winners); /* released by wlm_entrant_release */
/* Only the first of them. */
wlm_status wlm_contest_winner(wlm_contest *contest, wlm_entrant *winner);

/* A variant by name, or (NULL) the dispatcher's choice; an entrant that is wrong has a failure. */
void wlm_contest_enter(wlm_contest *contest, const char *variant, wlm_entrant *entrant);
/* Rivals over the contest's operands must compute the same product, or the comparison would mean nothing; one that does
 * not has a failure. */
void wlm_contest_check(wlm_contest *contest, wlm_entrant *rivals, int count);

void wlm_contest_note(wlm_contest *contest, const wlm_entrant *failed); /* among the failures */

/* The times that are reported: side by side, with the same number of calls in every sample, so many that the quickest
 * fills a millisecond. */
wlm_status wlm_contest_time(wlm_device *device, wlm_entrant *entrants, int count, int samples, int64_t *calls);

#endif
