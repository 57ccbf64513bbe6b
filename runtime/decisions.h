/* The cache of decisions, by problem and by cell of quantised stats (core/problem/cell.h): a new matrix in a known cell
 * costs a hash lookup. A decision is made for the centre of its cell, so it does not depend on the order of calls.
 * Tuned and pinned matrices are decided exactly: their key has the fingerprint instead of the cell. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/hash.h"
#include "runtime/dispatch/plan.h"

enum { WLMI_DECISION_SLOTS = 1024, WLMI_DECISIONS_MOST = 4096 };

/* The decision that replaces another one once its kernels are compiled (runtime/background.h). Shared by the queue, the
 * cache and the plans that wait for it. */
typedef struct wlmi_upgrade {
  atomic_int users;
  _Atomic(struct wlmi_decided *) result; /* NULL until then, and for ever if it does not compile */
} wlmi_upgrade;

wlmi_upgrade *wlmi_upgrade_share(wlmi_upgrade *upgrade); /* NULL stays NULL */
void wlmi_upgrade_drop(wlmi_upgrade *upgrade);

/* A decision with its loaded kernels, as a plan that is not bound to a matrix; or the fact that no kernel serves the
 * problem. Immutable but for the two counts. */
typedef struct wlmi_decided {
  wlmi_hash key;
  atomic_int users; /* the cache and the callers that took it */
  atomic_int taken; /* 1 = from the cache, since it was last thinned */
  int refused;      /* no kernel serves the problem (WLM_ERR_NOT_FOUND); the plan is empty */
  wlm_plan plan;    /* the plan's `upgrade` and its kernels are counted references */
  struct wlmi_decided *next;
} wlmi_decided;

/* The size of a tuned or pinned matrix, which is known without reading its arrays. */
typedef struct wlmi_known_size {
  int64_t rows, nnz, n;
  uint64_t fingerprint[2];
} wlmi_known_size;

typedef struct wlmi_decisions {
  pthread_rwlock_t lock;
  wlmi_decided *slots[WLMI_DECISION_SLOTS];
  int64_t count;
  uint64_t generation;    /* of the snapshot that they were made from */
  wlmi_known_size *known; /* sorted */
  int64_t known_count;
  int all_exact; /* pins exist, so every matrix is decided exactly */
} wlmi_decisions;

void wlmi_decisions_open(wlmi_decisions *decisions);
void wlmi_decisions_close(wlmi_decisions *decisions);
/* In a child of fork. Without the cache, every matrix is decided exactly until the next restart. */
void wlmi_decisions_in_child(wlmi_decisions *decisions);
/* Clears the cache and begins with another snapshot. */
void wlmi_decisions_restart(wlmi_decisions *decisions, const wlmi_snapshot *snapshot);

/* The key of a decision. */
typedef struct wlmi_decision_slot {
  wlmi_hash key;
  int exact; /* for this very matrix, by its fingerprint */
} wlmi_decision_slot;

/* The cached decision of a problem for a matrix with these stats, or NULL. Release it with wlmi_decided_drop. For
 * one-call products, whose stats have no fingerprint, the decision for a tuned matrix of the same size is used: at
 * worst it costs speed, and reading the matrix would make the call wait. */
wlmi_decided *wlmi_decisions_take(wlmi_decisions *decisions, const wlmi_hash *problem_id, int64_t n, wlmi_use use,
                                  wlm_stats *stats, wlmi_decision_slot *slot);
void wlmi_decided_drop(wlmi_decided *decided);
/* An empty one with one user; NULL when out of memory. */
wlmi_decided *wlmi_decided_new(const wlmi_hash *key);
/* Adds the decision, unless it was made from a snapshot of another generation than the present one. */
void wlmi_decisions_add(wlmi_decisions *decisions, wlmi_decided *decided, uint64_t generation);
/* The same, but replaces a decision with the same key. */
void wlmi_decisions_replace(wlmi_decisions *decisions, wlmi_decided *decided, uint64_t generation);

/* Drops the decisions that were not taken since the last time. */
void wlmi_decisions_thin(wlmi_decisions *decisions);

/* Whether a matrix of this size may have been tuned or pinned for products of n columns. */
int wlmi_decisions_know_size(wlmi_decisions *decisions, int64_t rows, int64_t nnz, int64_t n);

/* exact: use the fingerprint instead of the cell. */
wlmi_hash wlmi_decision_key(const wlmi_hash *problem_id, const wlm_stats *stats, wlmi_use use, int exact);
