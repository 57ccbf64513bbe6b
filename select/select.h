/* Selection: chooses the variant for a problem on a matrix, with reasons. It is a pure function. It takes a snapshot of
 * measurements, models and pins (select/snapshot.h), a request, and the variants that are valid for it; it returns a
 * ranked list with a reason for each entry. Plan creation, explain, the tuner's order, the benches and the report all
 * call it. */
#pragma once

#include "core/problem/program.h"
#include "select/snapshot.h"

typedef enum wlmi_step {
  WLMI_STEP_FINGERPRINT, /* this very matrix was tuned */
  WLMI_STEP_SIMILAR,     /* a matrix with nearly the same statistics was tuned */
  WLMI_STEP_RULE,        /* nothing like it was tuned: the built-in rules */
  WLMI_STEP_NAMED,       /* the caller named it */
  WLMI_STEP_BUILTIN,     /* nothing could be compiled: the kernel that the library contains */
  WLMI_STEP_PIN,         /* a user pinned a variant for this matrix or its bucket */
  WLMI_STEP_MODEL,       /* predicted by the cost model, whose training cases are near enough */
  WLMI_STEP_ONLY         /* the operation has one kernel: WLM_ARGMAX_GRADIENT */
} wlmi_step;

const char *wlmi_step_name(wlmi_step step);

enum {
  WLMI_ENTRIES = 16,
  WLMI_RANKED = 8,
  WLMI_SIMILAR = 4,
  WLMI_REFUSALS = 3,
  WLMI_DEVICE_CLASS = 256,
  WLMI_STALE = 192,
  WLMI_REASON = 160,
  WLMI_THIN = 8, /* a case with at least this many candidates is trusted */
  WLMI_MATRIX_NAME = 64,
  WLMI_LIKE = 80
};

/* One variant of the ranked list. */
typedef struct wlmi_entry {
  wlmi_variant variant; /* zeroed for the built-in kernel */
  double seconds;       /* expected of one call: measured, predicted, or that moving its bytes would take */
  wlmi_step step;       /* the step that chose it */
  const char *reason;   /* static */
} wlmi_entry;

/* A candidate as explain shows it, valid or not. `seconds` is measured on the matrix that decided; 0 = it was not. */
typedef struct wlmi_ranked {
  char variant[WLMI_VARIANT_NAME];
  double seconds, prepare_seconds;
  double predicted;  /* seconds that the model predicts; 0 = none */
  double relative;   /* price (time + preparing / calls) divided by that of the best ranked */
  double prepare;    /* preparing takes as long as this many calls of the best ranked; 0 = it needs none */
  double break_even; /* the fewest calls from which it beats the best unprepared candidate; infinite = it never does; 0
                      * = it needs no preparing, or there is no unprepared one */
  double spread;     /* of the measured seconds, relative to them; 0 = not known */
  int stale;         /* measured with another compiler or driver */
} wlmi_ranked;

/* A tuned case similar to the request. */
typedef struct wlmi_similar {
  char matrix[WLMI_MATRIX_NAME], variant[WLMI_VARIANT_NAME]; /* its name, "" = unnamed; what won there */
  int64_t rows, nnz, n;
  double distance, seconds;
  int stale; /* as in wlmi_ranked */
} wlmi_similar;

/* A candidate that was not chosen, and why: it ranks better but is not allowed, it failed on this matrix, or its kernel
 * could not be loaded. */
typedef struct wlmi_refusal {
  char variant[WLMI_VARIANT_NAME], reason[WLMI_REASON];
} wlmi_refusal;

/* A decision: the ranked list of variants to load, and everything that explain shows. It is a copy, so it may outlive
 * the snapshot. */
typedef struct wlmi_decision {
  wlmi_step step;
  const wlmi_families *families;
  char variant[WLMI_VARIANT_NAME]; /* of the first entry */
  /* The variants to try, one after the other: all valid for the problem, each once. The last entry is the built-in
   * kernel. */
  int entry_count;
  wlmi_entry entries[WLMI_ENTRIES];
  double distance;  /* to the tuned matrix that decided, 0 if it is this one; to the nearest training case of the model
                     * that decided; NaN if no tuned case decided */
  int64_t cases;    /* that the model which decided was trained on */
  const char *rule; /* the rule that decided, or that the model's choice follows; NULL = none; static */
  int64_t calls;    /* calls that the caller expects */
  int ranked_count; /* best first, the choice included */
  wlmi_ranked ranked[WLMI_RANKED];
  wlmi_ranked other; /* if the choice is prepared: the best unprepared one; otherwise the prepared one that pays from
                      * the fewest calls on; its name is empty if there is none */
  char borrowed[WLMI_DEVICE_CLASS], stale[WLMI_STALE]; /* as in wlmi_case and wlmi_model; "" = neither. For a model: of
                                                        * its training data */
  /* A pin for this matrix or bucket: its variant ("" = no pin), whether it is for this very matrix, and what would be
   * chosen without it ("" = nothing). If the step is not WLMI_STEP_PIN, the pinned variant may not be chosen, and
   * pin_reason says why. All other fields describe the decision without the pin. */
  char pin[WLMI_VARIANT_NAME], unpinned[WLMI_VARIANT_NAME], pin_reason[WLMI_REASON];
  int pin_exact;
  int online;  /* the case that decided was measured by online tuning only */
  int refused; /* candidates or rules that rank better but may not be chosen; the first of them: */
  wlmi_refusal refusals[WLMI_REFUSALS];
  int refused_failed; /* of the refused, those that failed on this very matrix */
  int unprepared;     /* candidates left out because they must be prepared and one call is expected */
  /* This matrix's case, if it was ignored because it is thin (it measured few candidates, and not the chosen one): how
   * many it measured, of how many, and its fastest candidate. `thin_known` is 0 if there is none. */
  int64_t thin_known, thin_of;
  char thin_variant[WLMI_VARIANT_NAME];
  char
      like[WLMI_LIKE]; /* ", with one head": how the problem of the case that decided is simpler; "" = it is the same */
  int failed;          /* candidates that failed on this very matrix; the first of them: */
  wlmi_refusal failures[WLMI_REFUSALS];
  int similar_count; /* tuned cases of the same problem class, the nearest first, whatever step decided */
  wlmi_similar similar[WLMI_SIMILAR];
  /* The model, if there is one: its prediction for the variant in seconds (0 = none) and the spread of log(time) around
   * it; when and on how much it was trained; how many candidates it was not trained on. */
  double predicted, spread;
  int64_t trained_at, trained_on;
  int untrained;
} wlmi_decision;

/* The valid variants of a request. */
typedef struct wlmi_variant_set {
  const wlmi_families *families;
  const wlmi_candidate_list *list; /* all candidates; NULL = not known: no model is used, and no case counts as thin */
  /* Whether the variant is a candidate for the problem; with may_prepare = 0, whether it is an unprepared one. NULL =
   * the list decides. */
  int (*is_valid)(void *user, const wlmi_variant *variant, int may_prepare);
  /* Appends why a name is not valid. May be NULL. */
  void (*explain)(void *user, const char *variant, int may_prepare, wlmi_text *reason);
  void *user;
} wlmi_variant_set;

/* What is chosen for. */
typedef enum wlmi_use {
  WLMI_USE_MEASURED,  /* a plan; the stats are those of the matrix */
  WLMI_USE_ESTIMATED, /* a plan; only rows, cols, nnz and mean are known, not how rows vary (select/estimated.c) */
  WLMI_USE_ONE_CALL,  /* one call, of whose matrix as little is known; its launches are not replayed from a graph, so on
                       * CUDA it takes at least as long as the host needs to enqueue them */
  WLMI_USE_SCATTER    /* one transposed product, by a kernel that walks A itself; the stats are those of A */
} wlmi_use;

typedef struct wlmi_request {
  const wlm_stats *stats; /* of op(A); a fingerprint of zeros means that there is none */
  wlmi_use use;
  const char *problem; /* wlmi_spec_key */
  const wlmi_spec *spec;
  const wlmi_limits *limits;
  const wlmi_variant_set *variants;
} wlmi_request;

/* The first step that applies decides: a pin; this very matrix, tuned for this problem or for a simpler one (with one
 * head; then also without A^T and argmax indices; then also with the sum of products instead of the operator; then
 * also in the other 16-bit type, then in f32; then the same with 32-bit indices. For attention: with one head; then
 * also without dropout); the model; a similar matrix; model and similar matrix of a simpler problem; for attention all
 * this for the sum of products; the rules. Candidates that failed on this very matrix are left out. Measured ones are
 * ranked by time + preparing / expected_calls; for 1 call no prepared candidate is chosen. For WLMI_USE_SCATTER a rule
 * decides.
 * WLM_ERR_NOT_FOUND if no variant is left; the decision then has the built-in kernel as its only entry.
 * WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_select(const wlmi_snapshot *snapshot, const wlmi_request *request, wlmi_decision *decision);

/* The decision for an operation with one kernel: its form for the problem's columns, then that for any number. */
wlm_status wlmi_select_only(const wlmi_spec *spec, wlmi_decision *decision);

/* The size with row lengths of a log-normal distribution: its quantiles give the longest row, the shares of short rows,
 * and that of the longest 1 % of the rows. */
wlm_stats wlmi_log_normal_stats(const wlm_stats *size, double cv);

/* "builtin" for the built-in kernel, the name of the operation for its only one. */
void wlmi_entry_print(const wlmi_decision *decision, int entry, char name[WLMI_VARIANT_NAME]);
/* Seconds that one call of the choice is expected to take: measured on the matrix that decided, or else predicted; 0 =
 * not known. */
double wlmi_decision_seconds(const wlmi_decision *decision);
/* Moves the decision to a later entry, because the entries before it could not be loaded; `reason` says why the first
 * one could not. */
void wlmi_decision_advance(wlmi_decision *decision, int entry, const char *reason);
