/* Finds the fastest kernel for one product on one matrix, and times it together with baselines. */
#pragma once

#include "bench/suite.h"
#include "tuner/search.h"

/* Must not be moved in memory, because the verifier points to its operands. */
typedef struct wlmi_comparison {
  wlm_context *context;
  const wlm_matrix *matrix;
  wlmi_upload values; /* of the case's matrix, where the problem needs others */
  wlmi_operands operands;
  wlmi_verifier *verifier;
  int samples; /* of every reported time */
  uint64_t seed;
  int64_t candidates; /* how many were screened */
  wlmi_text failures; /* members of a JSON object: variant and reason of failure */
} wlmi_comparison;

/* matrix: one on the same device; NULL = the case's own, with values of the problem's type, or ones where its message
 * reads none, for baselines that need values. Shares operands with a comparison of another problem, `first`
 * (wlmi_operands_create_beside), which must be released later; NULL = shares none. */
wlm_status wlmi_comparison_create(const wlmi_bench_case *bench, const wlmi_comparison *first, const wlm_matrix *matrix,
                                  const wlm_problem *problem, wlmi_comparison *comparison);
/* Values of 1 for the pattern of an upload, as wlmi_upload_create_values. */
wlm_status wlmi_comparison_ones(wlm_context *context, const wlmi_upload *pattern, const wlmi_csr_host *csr,
                                wlm_type value_type, wlmi_upload *upload);
void wlmi_comparison_release(wlmi_comparison *comparison); /* also of a zeroed one; methods are released before */

/* Screens these candidates, and checks and times the best `finalists` of each kind again. The screening times are
 * stored in `screened`, an array of list->count zeroed elements. Release *finals also after an error. */
wlm_status wlmi_comparison_search(wlmi_comparison *comparison, const wlmi_candidate_list *list, int finalists,
                                  wlmi_timed *screened, wlmi_finals *finals);

/* The fastest correct candidates. Their times are not the ones to report. */
typedef struct wlmi_winners {
  wlmi_method plain;    /* the fastest unprepared candidate */
  wlmi_method prepared; /* the fastest of all if it is a prepared one; otherwise zeroed */
} wlmi_winners;
wlm_status wlmi_comparison_winners(wlmi_comparison *comparison,
                                   wlmi_winners *winners); /* released by wlmi_method_release */
/* Only the first of them. */
wlm_status wlmi_comparison_winner(wlmi_comparison *comparison, wlmi_method *winner);

/* Sets up and checks a variant by name, or (NULL) the library's choice; a wrong one has a failure. */
void wlmi_comparison_enter(wlmi_comparison *comparison, const char *variant, wlmi_method *method);
/* Checks that baselines on these operands compute the same product; one that does not gets a failure. */
void wlmi_comparison_check(wlmi_comparison *comparison, wlmi_method *baselines, int count);

/* The one with the smaller time; either may be NULL or have a failure. NULL = neither was timed. */
const wlmi_method *wlmi_method_quicker(const wlmi_method *a, const wlmi_method *b);
const wlmi_method *wlmi_methods_quickest(const wlmi_method *methods, int count);

void wlmi_comparison_note(wlmi_comparison *comparison, const wlmi_method *failed); /* Adds it to `failures`. */
void wlmi_comparison_put_failures(const wlmi_comparison *comparison, const char *key, wlmi_text *line);

/* Takes the times that are reported: interleaved, with the same number of calls in every sample, so that the fastest
 * takes a millisecond. */
wlm_status wlmi_comparison_time(wlmi_device *device, wlmi_method *methods, int count, int samples, int64_t *calls);
