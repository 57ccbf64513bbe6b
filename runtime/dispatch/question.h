/* What the steps of choosing hand on to each other; for the files of choosing alone. */
#ifndef WLM_RUNTIME_DISPATCH_QUESTION_H
#define WLM_RUNTIME_DISPATCH_QUESTION_H

#include "runtime/dispatch/choose.h"

/* The problem's key, or that of a simpler problem where nothing is known of this one, and who learned of such. */
typedef struct wlmi_topic {
  const char *key;
  const wlmi_model *model; /* NULL = none for such problems */
  wlmi_model_case asked;   /* of the model */
} wlmi_topic;

/* A problem whose kernels are those of this one but for a few lines. */
typedef struct wlmi_simpler {
  char key[WLM_SPEC_KEY], like[WLM_LIKE]; /* ", with one head": what is told where it decided */
} wlmi_simpler;

/* Thin cases that are asked before one goes on without any; problems that are simpler than one. */
enum { WLM_DOUBTS = 4, WLM_SIMPLER = 2 };

/* Who asks, and what may be chosen. */
typedef struct wlmi_question {
  const wlmi_snapshot *snapshot;
  const wlm_stats *stats;
  const wlmi_spec *spec;
  const wlmi_limits *limits;
  int64_t n, calls;
  const wlmi_judge *judge;
  const wlmi_simpler *simpler; /* the nearest first */
  int simpler_count;
  wlmi_topic topic;
  const wlmi_case
      *matrices[1 + WLM_SIMPLER];      /* of this very matrix on this device's class, for each key; NULL = none */
  const wlmi_case *doubts[WLM_DOUBTS]; /* cases that know too little */
  int doubt_count;
  const wlmi_candidate *candidates; /* all there are but those that failed */
  int64_t candidate_count;
  int described;
  wlmi_candidate *kept; /* the list, where it is not the judge's */
} wlmi_question;

/* ---- question.c: what may be chosen --------------------------------------------------------------- */

int wlmi_question_may_prepare(const wlmi_question *q);
/* Valid for the problem, not to be prepared unless it may, and not known to fail on this very matrix. */
int wlmi_question_allows(const wlmi_question *q, const char *variant, int prepare);
/* Why not, into what has room for WLM_REASON. */
void wlmi_question_reason(const wlmi_question *q, const char *variant, char *reason);
/* Counts and keeps one that is not allowed. */
void wlmi_question_refuse(const wlmi_question *q, const char *variant, wlmi_decision *choice);
/* Fills the list of candidates, once, where the judge knows them: not before it is needed, for it takes the most time
 * of all that choosing does. */
void wlmi_question_describe(wlmi_question *q);
void wlmi_question_release(wlmi_question *q);
/* Whether the case says anything of the variant, if only that it fails. */
int wlmi_question_knows(const wlmi_question *q, const wlmi_case *c, const char *variant);
/* What failed on this very matrix. */
int64_t wlmi_question_failures(const wlmi_question *q);
void wlmi_question_tell_failures(const wlmi_question *q, wlmi_decision *choice);
void wlmi_copy_name(char *to, size_t capacity, const char *from);

/* ---- ranking.c: by what was measured ---------------------------------------------------------------- */

int wlmi_ranking_serves(const wlmi_question *q, const wlmi_case *c); /* whether it has a candidate that may be chosen */
void wlmi_ranking_decide(const wlmi_question *q, const wlmi_case *c, wlm_step step, double distance,
                         wlmi_decision *choice); /* by a case that serves */

/* ---- by_model.c: by what was learned ------------------------------------------------------------------ */

wlmi_topic wlmi_topic_make(const wlmi_question *q, const char *key);
int wlmi_choose_by_model(wlmi_question *q, wlmi_decision *choice);
/* What the model thinks of all that explain tells; nothing where no candidates were described so far. */
void wlmi_add_predictions(wlmi_question *q, wlmi_decision *choice);

#endif
