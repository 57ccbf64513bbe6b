/* Finds the fastest kernel for one product on one matrix, and times it together with baselines. */
#ifndef WLM_BENCH_CONTEST_H
#define WLM_BENCH_CONTEST_H

#include "bench/suite.h"
#include "tuner/search.h"

/* Must not be moved in memory, because the verifier points to its operands. */
typedef struct wlmi_contest {
  wlm_context *context;
  wlmi_operands operands;
  wlmi_verifier *verifier;
  int samples; /* of every reported time */
  uint64_t seed;
  int64_t candidates; /* how many were screened */
  wlmi_text failures; /* members of a JSON object: variant and reason of failure */
} wlmi_contest;

/* The matrix is the case's own, or another on the same device. */
wlm_status wlmi_contest_create(const wlmi_bench_case *bench, const wlm_matrix *matrix, const wlm_problem *problem,
                               wlmi_contest *contest);
/* For another problem, sharing operands with a first one (wlmi_operands_create_beside), which must be released later.
 */
wlm_status wlmi_contest_create_beside(const wlmi_contest *first, const wlm_matrix *matrix, const wlm_problem *problem,
                                      wlmi_contest *contest);
void wlmi_contest_release(wlmi_contest *contest); /* also of a zeroed one; entrants are released before */

/* Screens these candidates, and checks and times the best `finalists` of each kind again. The screening times are
 * stored in `screened`, an array of list->count zeroed elements. Release *finals also after an error. */
wlm_status wlmi_contest_search(wlmi_contest *contest, const wlmi_candidate_list *list, int finalists,
                               wlmi_screened *screened, wlmi_finals *finals);

/* The fastest correct candidates. Their times are not the ones to report. */
typedef struct wlmi_winners {
  wlmi_entrant plain;    /* the fastest unprepared candidate */
  wlmi_entrant prepared; /* the fastest of all if it is a prepared one; otherwise zeroed */
} wlmi_winners;
wlm_status wlmi_contest_winners(wlmi_contest *contest, wlmi_winners *winners); /* released by wlmi_entrant_release */
/* Only the first of them. */
wlm_status wlmi_contest_winner(wlmi_contest *contest, wlmi_entrant *winner);

/* Sets up and checks a variant by name, or (NULL) the library's choice; a wrong one has a failure. */
void wlmi_contest_enter(wlmi_contest *contest, const char *variant, wlmi_entrant *entrant);
/* Checks that baselines on these operands compute the same product; one that does not gets a failure. */
void wlmi_contest_check(wlmi_contest *contest, wlmi_entrant *baselines, int count);

void wlmi_contest_note(wlmi_contest *contest, const wlmi_entrant *failed); /* Adds it to `failures`. */
void wlmi_contest_put_failures(const wlmi_contest *contest, const char *key, wlmi_text *line);

/* Takes the times that are reported: interleaved, with the same number of calls in every sample, so that the fastest
 * takes a millisecond. */
wlm_status wlmi_contest_time(wlmi_device *device, wlmi_entrant *entrants, int count, int samples, int64_t *calls);

#endif
