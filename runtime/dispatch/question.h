/* What the steps of choosing hand on to each other; for the files of choosing alone. */
#ifndef WLM_RUNTIME_DISPATCH_QUESTION_H
#define WLM_RUNTIME_DISPATCH_QUESTION_H

#include "runtime/dispatch/choose.h"

/* The problem's key, or that of a simpler problem where nothing is known of this one, and who learned of such. */
typedef struct wlm_topic {
  const char *key;
  const wlm_model *model; /* NULL = none for such problems */
  wlm_model_case asked;   /* of the model */
} wlm_topic;

/* A problem whose kernels are those of this one but for a few lines. */
typedef struct wlm_simpler {
  char key[WLM_SPEC_KEY], like[WLM_LIKE]; /* ", with one head": what is told where it decided */
} wlm_simpler;

/* Thin cases that are asked before one goes on without any; problems that are simpler than one. */
enum { WLM_DOUBTS = 4, WLM_SIMPLER = 2 };

/* Who asks, and what may be chosen. */
typedef struct wlm_question {
  const wlm_snapshot *snapshot;
  const wlm_stats *stats;
  const wlm_spec *spec;
  const wlm_limits *limits;
  int64_t n, calls;
  const wlm_judge *judge;
  const wlm_simpler *simpler; /* the nearest first */
  int simpler_count;
  wlm_topic topic;
  const wlm_case *matrices[1 + WLM_SIMPLER]; /* of this very matrix on this device's class, for each key; NULL = none */
  const wlm_case *doubts[WLM_DOUBTS];        /* cases that know too little */
  int doubt_count;
  const wlm_candidate *candidates; /* all there are but those that failed */
  int64_t candidate_count;
  int described;
  wlm_candidate *kept; /* the list, where it is not the judge's */
} wlm_question;

/* ---- question.c: what may be chosen --------------------------------------------------------------- */

int wlm_question_may_prepare(const wlm_question *q);
/* Valid for the problem, not to be prepared unless it may, and not known to fail on this very matrix. */
int wlm_question_allows(const wlm_question *q, const char *variant, int prepare);
/* Why not, into what has room for WLM_REASON. */
void wlm_question_reason(const wlm_question *q, const char *variant, char *reason);
/* Counts and keeps one that is not allowed. */
void wlm_question_refuse(const wlm_question *q, const char *variant, wlm_decision *choice);
/* Fills the list of candidates, once, where the judge knows them: not before it is needed, for it takes the most time
 * of all that choosing does. */
void wlm_question_describe(wlm_question *q);
void wlm_question_release(wlm_question *q);
/* Whether the case says anything of the variant, if only that it fails. */
int wlm_question_knows(const wlm_question *q, const wlm_case *c, const char *variant);
/* What failed on this very matrix. */
int64_t wlm_question_failures(const wlm_question *q);
void wlm_question_tell_failures(const wlm_question *q, wlm_decision *choice);
void wlm_copy_name(char *to, size_t capacity, const char *from);

/* ---- ranking.c: by what was measured ---------------------------------------------------------------- */

int wlm_ranking_serves(const wlm_question *q, const wlm_case *c); /* whether it has a candidate that may be chosen */
void wlm_ranking_decide(const wlm_question *q, const wlm_case *c, wlm_step step, double distance,
                        wlm_decision *choice); /* by a case that serves */

/* ---- by_model.c: by what was learned ------------------------------------------------------------------ */

wlm_topic wlm_topic_make(const wlm_question *q, const char *key);
int wlm_choose_by_model(wlm_question *q, wlm_decision *choice);
/* What the model thinks of all that explain tells; nothing where no candidates were described so far. */
void wlm_add_predictions(wlm_question *q, wlm_decision *choice);

#endif
