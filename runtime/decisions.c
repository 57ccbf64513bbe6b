#include "runtime/decisions.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/cell.h"

/* ---- keys ------------------------------------------------------------------------------------------ */

wlmi_hash wlmi_decision_key(const wlmi_hash *problem, const wlm_stats *stats, wlmi_use use, int exact) {
  struct {
    wlmi_hash problem;
    uint64_t use, exact, place[3];
  } key = {*problem, use, exact != 0, {0}};
  wlmi_cell cell;
  _Static_assert(sizeof cell <= sizeof key.place, "a cell fits");
  wlmi_cell_of(stats, use != WLMI_USE_MEASURED, &cell);
  if (exact)
    memcpy(key.place, stats->fingerprint, sizeof stats->fingerprint);
  else
    memcpy(key.place, &cell, sizeof cell);
  return wlmi_hash_bytes(&key, sizeof key);
}

/* ---- sizes of tuned matrices ------------------------------------------------------------------------- */

static int compare_sizes(const void *left, const void *right) {
  const wlmi_known_size *a = left, *b = right;
  if (a->rows != b->rows) return a->rows < b->rows ? -1 : 1;
  if (a->nnz != b->nnz) return a->nnz < b->nnz ? -1 : 1;
  return (a->n > b->n) - (a->n < b->n);
}

static wlm_status collect_sizes(const wlmi_snapshot *snapshot, wlmi_known_size **known, int64_t *count) {
  *count = 0;
  WLM_CHECK(wlmi_alloc_array(snapshot->case_count, sizeof **known, "sizes of tuned matrices", (void **)known));
  for (int64_t i = 0; i < snapshot->case_count; i++) {
    const wlmi_case *c = &snapshot->cases[i];
    const wlm_stats *of = c->stats;
    if (of && c->n > 0)
      (*known)[(*count)++] = (wlmi_known_size){of->rows, of->nnz, c->n, {of->fingerprint[0], of->fingerprint[1]}};
  }
  if (*count) qsort(*known, (size_t)*count, sizeof **known, compare_sizes);
  return WLM_OK;
}

/* NULL where no matrix of this size was tuned. */
static const wlmi_known_size *known_size(const wlmi_decisions *d, int64_t rows, int64_t nnz, int64_t n) {
  const wlmi_known_size size = {.rows = rows, .nnz = nnz, .n = n};
  return d->known_count ? bsearch(&size, d->known, (size_t)d->known_count, sizeof size, compare_sizes) : NULL;
}

int wlmi_decisions_know_size(wlmi_decisions *d, int64_t rows, int64_t nnz, int64_t n) {
  pthread_rwlock_rdlock(&d->lock);
  const int known = d->all_exact || known_size(d, rows, nnz, n);
  pthread_rwlock_unlock(&d->lock);
  return known;
}

/* ---- the cache ------------------------------------------------------------------------------------------ */

void wlmi_decisions_open(wlmi_decisions *d) { pthread_rwlock_init(&d->lock, NULL); }

wlmi_upgrade *wlmi_upgrade_share(wlmi_upgrade *upgrade) {
  if (upgrade) atomic_fetch_add(&upgrade->users, 1);
  return upgrade;
}

void wlmi_upgrade_drop(wlmi_upgrade *upgrade) {
  if (!upgrade || atomic_fetch_sub(&upgrade->users, 1) != 1) return;
  wlmi_decided_drop(atomic_load(&upgrade->result));
  wlmi_free(upgrade);
}

wlmi_decided *wlmi_decided_new(const wlmi_hash *key) {
  wlmi_decided *decided = wlmi_alloc_zero(1, sizeof *decided);
  if (!decided) return NULL;
  atomic_init(&decided->users, 1);
  decided->key = *key;
  return decided;
}

void wlmi_decided_drop(wlmi_decided *decided) {
  if (!decided || atomic_fetch_sub(&decided->users, 1) != 1) return;
  wlmi_upgrade_drop(decided->plan.upgrade);
  wlmi_plan_drop_kernels(&decided->plan);
  wlmi_free(decided);
}

static void clear(wlmi_decisions *d) {
  for (int i = 0; i < WLMI_DECISION_SLOTS; i++) {
    while (d->slots[i]) {
      wlmi_decided *first = d->slots[i];
      d->slots[i] = first->next;
      wlmi_decided_drop(first);
    }
  }
  d->count = 0;
}

void wlmi_decisions_close(wlmi_decisions *d) {
  clear(d);
  wlmi_free(d->known);
  pthread_rwlock_destroy(&d->lock);
}

void wlmi_decisions_in_child(wlmi_decisions *d) {
  const uint64_t generation = d->generation;
  const int is_whole = !pthread_rwlock_tryrdlock(&d->lock);
  if (!is_whole) *d = (wlmi_decisions){.generation = generation, .all_exact = 1};
  pthread_rwlock_init(&d->lock, NULL);
}

void wlmi_decisions_restart(wlmi_decisions *d, const wlmi_snapshot *snapshot) {
  wlmi_known_size *known;
  int64_t count;
  const wlm_status status = collect_sizes(snapshot, &known, &count);
  if (status != WLM_OK) wlmi_log(WLM_LOG_WARNING, "every matrix is decided exactly: %s", wlm_error_detail());
  pthread_rwlock_wrlock(&d->lock);
  clear(d);
  wlmi_free(d->known);
  d->known = known;
  d->known_count = count;
  d->all_exact = snapshot->pin_count > 0 || status != WLM_OK;
  d->generation = snapshot->generation;
  pthread_rwlock_unlock(&d->lock);
}

static wlmi_decided *find(const wlmi_decisions *d, const wlmi_hash *key) {
  for (wlmi_decided *e = d->slots[key->low % WLMI_DECISION_SLOTS]; e; e = e->next)
    if (wlmi_hash_equal(e->key, *key)) return e;
  return NULL;
}

wlmi_decided *wlmi_decisions_take(wlmi_decisions *d, const wlmi_hash *problem_id, int64_t n, wlmi_use use,
                                  wlm_stats *stats, wlmi_decision_slot *slot) {
  pthread_rwlock_rdlock(&d->lock);
  const wlmi_known_size *known = use == WLMI_USE_SCATTER ? NULL : known_size(d, stats->rows, stats->nnz, n);
  if (known && use == WLMI_USE_ONE_CALL) memcpy(stats->fingerprint, known->fingerprint, sizeof known->fingerprint);
  slot->exact = use != WLMI_USE_SCATTER && (known || d->all_exact) && (stats->fingerprint[0] || stats->fingerprint[1]);
  slot->key = wlmi_decision_key(problem_id, stats, use, slot->exact);
  wlmi_decided *found = find(d, &slot->key);
  if (found) atomic_fetch_add(&found->users, 1);
  if (found && !atomic_load_explicit(&found->taken, memory_order_relaxed)) atomic_store(&found->taken, 1);
  pthread_rwlock_unlock(&d->lock);
  return found;
}

void wlmi_decisions_thin(wlmi_decisions *d) {
  pthread_rwlock_wrlock(&d->lock);
  for (int i = 0; i < WLMI_DECISION_SLOTS; i++)
    for (wlmi_decided **at = &d->slots[i]; *at;) {
      wlmi_decided *decided = *at;
      if (atomic_exchange(&decided->taken, 0)) {
        at = &decided->next;
        continue;
      }
      *at = decided->next;
      d->count--;
      wlmi_decided_drop(decided);
    }
  pthread_rwlock_unlock(&d->lock);
}

static void insert(wlmi_decisions *d, wlmi_decided *decided) {
  if (d->count == WLMI_DECISIONS_MOST) clear(d);
  wlmi_decided **slot = &d->slots[decided->key.low % WLMI_DECISION_SLOTS];
  atomic_fetch_add(&decided->users, 1);
  decided->next = *slot;
  *slot = decided;
  d->count++;
}

/* If two threads made the same decision, the first one is kept. A full cache is cleared. */
void wlmi_decisions_add(wlmi_decisions *d, wlmi_decided *decided, uint64_t generation) {
  pthread_rwlock_wrlock(&d->lock);
  if (d->generation == generation && !find(d, &decided->key)) insert(d, decided);
  pthread_rwlock_unlock(&d->lock);
}

void wlmi_decisions_replace(wlmi_decisions *d, wlmi_decided *decided, uint64_t generation) {
  pthread_rwlock_wrlock(&d->lock);
  wlmi_decided **at = &d->slots[decided->key.low % WLMI_DECISION_SLOTS], *old = find(d, &decided->key);
  while (old && *at != old) at = &(*at)->next;
  if (old && d->generation == generation) {
    *at = old->next;
    d->count--;
    wlmi_decided_drop(old);
  }
  if (d->generation == generation) insert(d, decided);
  pthread_rwlock_unlock(&d->lock);
}
