/* Which variant for a problem on a matrix, and why. A pure function of plain data: what was learned
 * (select/snapshot.h), a request and the variants that are valid for it go in, a ranked list with a reason for each
 * entry comes out. Plan creation, explain, the tuner's order, the benches and the report all call it. */
#ifndef WLM_SELECT_SELECT_H
#define WLM_SELECT_SELECT_H

#include "common/program.h"
#include "common/text.h"
#include "select/snapshot.h"

typedef enum wlm_step {
  WLM_STEP_FINGERPRINT, /* this very matrix was tuned */
  WLM_STEP_BUCKET,      /* matrices like it were tuned */
  WLM_STEP_RULE,        /* nothing near enough was tuned: the built-in table */
  WLM_STEP_NAMED,       /* the caller named it */
  WLM_STEP_BUILTIN,     /* nothing could be compiled: what the library carries */
  WLM_STEP_PIN,         /* a user decided by hand, for this matrix or its bucket */
  WLM_STEP_MODEL        /* the model, trained on tuned matrices that are not far, predicts it */
} wlm_step;

const char *wlmi_step_name(wlm_step step);

enum {
  WLM_ENTRIES = 16,
  WLM_RANKED = 8,
  WLM_SIMILAR = 4,
  WLM_REFUSALS = 3,
  WLM_DEVICE_CLASS = 256,
  WLM_STALE = 192,
  WLM_REASON = 160,
  WLM_THIN = 8, /* a case that knows as many candidates is trusted */
  WLM_MATRIX_NAME = 64,
  WLM_LIKE = 64
};

/* One of the variants to try, in the order of trust. */
typedef struct wlmi_entry {
  wlmi_variant variant; /* zeroes for the kernel that the library carries */
  double seconds;       /* expected of one call: measured or predicted; 0 = not known */
  wlm_step step;        /* that put it here */
  const char *reason;   /* static */
} wlmi_entry;

/* A candidate as explain shows it, valid or not. Seconds are measured, 0 where they were not on this matrix. */
typedef struct wlmi_ranked {
  char variant[WLM_VARIANT_NAME];
  double seconds, prepare_seconds;
  double predicted;  /* seconds that the model expects; 0 where it has none */
  double relative;   /* time with its share of the preparing, over that of the best ranked */
  double prepare;    /* calls of the best ranked that preparing takes as long as; 0 = it needs none */
  double break_even; /* the fewest calls from which it beats the best that needs no preparing; infinite = none; 0 = it
                      * needs none itself, or there is no such one */
  double spread;     /* of the measured seconds, relative to them; 0 = not known */
  int stale;         /* measured with another compiler or driver */
} wlmi_ranked;

/* A tuned case near the one that is asked for. */
typedef struct wlmi_similar {
  char matrix[WLM_MATRIX_NAME], variant[WLM_VARIANT_NAME]; /* its name, "" = unnamed; what won there */
  int64_t rows, nnz, n;
  double distance, seconds;
  int stale; /* as in wlmi_ranked */
} wlmi_similar;

/* Better ranked than what was chosen, and why it is not. */
typedef struct wlmi_refusal {
  char variant[WLM_VARIANT_NAME], reason[WLM_REASON];
} wlmi_refusal;

/* A copy of everything that explain shows: it outlives the snapshot. The entries are what is loaded; names are shown.
 */
typedef struct wlmi_decision {
  wlm_step step;
  const wlmi_families *families;
  char variant[WLM_VARIANT_NAME]; /* of the first entry */
  /* What to try, one after the other: valid for the problem, each once. The last one is the built-in kernel. */
  int entry_count;
  wlmi_entry entries[WLM_ENTRIES];
  double distance;    /* in stats space; 0 for the same matrix or the same bucket and N; not a number where nothing that
                       * was tuned decided */
  int64_t tuned_n;    /* N of the case that decided */
  wlmi_bucket bucket; /* of the case that decided */
  int64_t matrices;   /* behind the case that decided */
  const char *rule;   /* the rule that decided, where one did; static */
  int64_t calls;      /* that the caller expects */
  int ranked_count;   /* best first, the choice included */
  wlmi_ranked ranked[WLM_RANKED];
  wlmi_ranked other; /* the best that needs no preparing where the choice does; otherwise the one whose preparing
                      * pays soonest; its name is empty where there is none */
  char borrowed[WLM_DEVICE_CLASS], stale[WLM_STALE]; /* as in wlmi_case and wlmi_model; "" = neither. In a bucket of
                                                      * any of its matrices, of a model of what it was trained on */
  /* A pin that fits: its variant, or "", whether it is for this very matrix, and what would be chosen without it ("" =
   * nothing). Where the step is another one, the pinned variant is not allowed: why. All other fields describe the
   * decision without the pin. */
  char pin[WLM_VARIANT_NAME], unpinned[WLM_VARIANT_NAME], pin_reason[WLM_REASON];
  int pin_exact;
  int online;  /* the case that decided has times of real calls alone */
  int refused; /* better ranked candidates, or rules above, that are not allowed; the first of them: */
  wlmi_refusal refusals[WLM_REFUSALS];
  int refused_failed; /* of the refused, those that failed on this very matrix */
  int unprepared;     /* candidates left out since they must be prepared and one call is expected */
  /* Where the nearest tuned case was passed over, since it has too few of the candidates and not the one that was
   * chosen: how many, of how many, whether it is this very matrix, and the quickest of them. `thin_known` is 0 where
   * there is none. */
  int64_t thin_known, thin_of;
  int thin_exact;
  char thin_variant[WLM_VARIANT_NAME];
  char like[WLM_LIKE]; /* ", with one head": the case that decided is of a simpler problem; "" = of this one */
  int failed;          /* candidates that failed on this very matrix when it was tuned; the first of them: */
  wlmi_refusal failures[WLM_REFUSALS];
  int similar_count; /* tuned cases of such problems, the nearest first, whatever the step */
  wlmi_similar similar[WLM_SIMILAR];
  /* The model, where there is one: what it predicts for the variant, in seconds (0 = nothing) and the spread of
   * log(time) around that; when and on how much it was trained; candidates that it was not trained on. */
  double predicted, spread;
  int64_t trained_at, trained_on;
  int untrained;
} wlmi_decision;

/* The valid variants of a request. */
typedef struct wlmi_variant_set {
  const wlmi_families *families;
  const wlmi_candidate_list *list; /* all of them; NULL = then no model is used, and no case knows too few of them */
  /* Whether the variant is a candidate for the problem at hand, and one that needs no preparing unless it may. NULL =
   * the list says so. */
  int (*is_valid)(void *user, const wlmi_variant *variant, int may_prepare);
  /* Appends why a name is not valid. May be NULL. */
  void (*explain)(void *user, const char *variant, int may_prepare, wlmi_text *reason);
  void *user;
} wlmi_variant_set;

/* How far the stats of a request can be trusted. */
typedef enum wlmi_grade {
  WLM_GRADE_MEASURED,
  WLM_GRADE_GIVEN,    /* by the caller */
  WLM_GRADE_ESTIMATED /* rows, cols, nnz and mean alone; how the rows vary is not known (select/estimated.c) */
} wlmi_grade;

typedef struct wlmi_request {
  const wlm_stats *stats; /* of op(A); a fingerprint of zeros is none */
  wlmi_grade grade;
  const char *problem; /* wlmi_spec_key */
  const wlmi_spec *spec;
  const wlmi_limits *limits;
  const wlmi_variant_set *variants;
  /* What enqueueing one launch takes on the host, where each call has a new matrix, so that none is replayed from a
   * graph; 0 = it does not matter. A call then takes at least as long as its launches. */
  double launch_seconds;
} wlmi_request;

/* A pin, then exact fingerprint (for this problem, or for a simpler one: without A^T, positions and heads, or with a
 * sum of products in the operator's place), then the model, then the nearest bucket, then both of a simpler problem,
 * then the rules; candidates that failed on this very matrix are left out, and measured ones are ranked by time +
 * preparing / expected_calls. What must be prepared is never chosen for 1 call. WLM_ERR_NOT_FOUND where no variant is
 * left; the decision then has the built-in kernel as its only entry. WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_select(const wlmi_snapshot *snapshot, const wlmi_request *request, wlmi_decision *decision);

/* "builtin" for the kernel that the library carries. */
void wlmi_entry_print(const wlmi_decision *decision, int entry, char name[WLM_VARIANT_NAME]);
/* The decision falls to a later entry, since the ones before it could not be had: `reason` is why the first could not.
 */
void wlmi_decision_advance(wlmi_decision *decision, int entry, const char *reason);

/* Distance of two buckets and Ns: each axis counts about 1 where kernels begin to differ (a factor of 2 in
 * nnz/row or N, a class of CV, a factor of 4 in rows). Beyond WLM_FAR nothing is taken from a bucket. */
double wlmi_bucket_distance(const wlmi_bucket *a, int64_t a_n, const wlmi_bucket *b, int64_t b_n);

#endif
