/* A plan that learns while it is used. Who may run, and what its times mean, is decided in online_policy.c; who there
 * is at all in learner_gather.c. Here is the path of a call, and the end.
 *
 * A call never waits: it asks how earlier timed calls went (which the device tells or does not tell yet), takes its
 * turn and enqueues one kernel, between two marks on the stream where it is timed. Once nothing is left to be tried a
 * call is a plain execute. */
#include <math.h>

#include "common/log.h"
#include "common/memory.h"
#include "db/store.h"
#include "tuner/learner_state.h"
#include "tuner/measured.h"

/* ---- making ------------------------------------------------------------------------------------------- */

static wlm_status check_options(const wlm_learner_options *o) {
  if (o->size != sizeof *o)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_options.size is %zu, expected %zu: use the initialiser",
                     o->size, sizeof *o);
  if (!(o->share > 0 && o->share <= 0.5))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_options.share is %g, must be above 0 and at most 0.5",
                     o->share);
  if (!isfinite(o->slowdown) || o->slowdown < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_options.slowdown is %g, must be at least 0", o->slowdown);
  if (!isfinite(o->abandon) || o->abandon <= 1)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_options.abandon is %g, must be above 1", o->abandon);
  if (o->challengers < 0 || o->challengers >= WLM_ONLINE_CONTENDERS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_options.challengers is %d, must be 0 to %d", o->challengers,
                     WLM_ONLINE_CONTENDERS - 1);
  return WLM_OK;
}

static void begin(wlm_learner *l) {
  const wlmi_online_rules rules = {l->options.share, l->options.slowdown, l->options.abandon};
  double expected[WLM_ONLINE_CONTENDERS];
  for (int i = 0; i < l->count; i++) {
    const double ratio = l->contenders[i].look / l->contenders[0].look;
    expected[i] = isfinite(ratio) && ratio > 0 ? ratio : 1; /* the clock was too coarse */
  }
  wlmi_online_begin(&l->online, &rules, expected, l->count);
  l->is_learning = l->count > 1;
}

wlm_status wlm_learner_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                              const wlm_learner_options *options, wlm_learner **out) {
  static const wlm_learner_options defaults = WLM_LEARNER_OPTIONS_INIT;
  wlm_status status;
  *out = NULL;
  if (!options) options = &defaults;
  status = check_options(options);
  if (status != WLM_OK) return status;
  wlm_learner *l = wlmi_alloc_zero(1, sizeof *l);
  if (!l) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "learner");
  l->context = context;
  l->device = wlmi_context_device(context);
  l->options = *options;
  l->matrix_name = wlmi_strdup(options->matrix_name);
  if (options->matrix_name && !l->matrix_name) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "learner"));
  for (int i = 0; i < 2; i++) WLM_TRY(l->device->ops->watch_create(l->device, &l->watches[i]));
  WLM_TRY(wlmi_learner_gather(l, matrix, problem));
  l->options.first = l->options.matrix_name = NULL; /* the caller's, and used */
  begin(l);
  *out = l;
done:
  if (status != WLM_OK) wlm_learner_destroy(l);
  return status;
}

/* ---- a call -------------------------------------------------------------------------------------------- */

/* What one call is given. */
typedef struct call {
  enum { PRODUCT, WITH_POSITIONS, EDGES } kind;
  const void *x, *b; /* x: dC, of an sddmm */
  void *c, *arg, *stream;
} call;

static wlm_status run(const wlm_learner *l, int contender, const call *with) {
  const wlmi_entrant *entrant = &l->contenders[contender].entrant;
  void *workspace = wlmi_entrant_workspace(entrant);
  switch (with->kind) {
    case EDGES: return wlm_plan_execute_sddmm(entrant->plan, with->x, with->b, with->c, workspace, with->stream);
    case WITH_POSITIONS:
      return wlm_plan_execute_arg(entrant->plan, with->b, with->c, with->arg, workspace, with->stream);
    default: return wlm_plan_execute(entrant->plan, with->b, with->c, workspace, with->stream);
  }
}

static void forget_pending(wlm_learner *l) {
  wlmi_online_withdraw(&l->online);
  l->pending = 0;
}

static void stop_learning(wlm_learner *l) {
  if (l->pending) forget_pending(l);
  l->is_learning = 0;
}

/* The times that the device knows by now. */
static void hear(wlm_learner *l) {
  const wlmi_device_ops *ops = l->device->ops;
  while (l->pending) {
    int done = 0;
    double seconds = 0;
    if (ops->watch_poll(l->watches[0], &done, &seconds) != WLM_OK) return stop_learning(l);
    if (!done) return;
    wlmi_watch *watch = l->watches[0];
    const int whose = l->timed[0];
    l->watches[0] = l->watches[1]; /* which may be under way */
    l->timed[0] = l->timed[1];
    l->watches[1] = watch;
    l->pending--;
    wlmi_online_tell(&l->online, whose, seconds);
    if (!l->online.in_flight) l->pending = 0; /* a time that tells nothing takes its pair along */
  }
}

/* One that the device refuses is not tried again, and this call is the incumbent's. */
static wlm_status run_timed(wlm_learner *l, int contender, const call *with) {
  const wlmi_device_ops *ops = l->device->ops;
  wlmi_watch *watch = l->watches[l->pending];
  if (ops->watch_start(watch, with->stream) != WLM_OK) {
    stop_learning(l);
    return run(l, l->online.incumbent, with);
  }
  const wlm_status status = run(l, contender, with);
  if (status == WLM_ERR_DEVICE && contender != l->online.incumbent) {
    l->pending = 0;
    wlmi_online_exclude(&l->online, contender);
    return run(l, l->online.incumbent, with);
  }
  if (status != WLM_OK) {
    forget_pending(l);
    return status;
  }
  if (ops->watch_stop(watch, with->stream) != WLM_OK)
    stop_learning(l);
  else
    l->timed[l->pending++] = contender;
  return WLM_OK;
}

static wlm_status execute(wlm_learner *l, const call *with) {
  if (!l->is_learning) {
    l->online.calls++;
    return run(l, l->online.incumbent, with);
  }
  if (l->device->ops->is_captured(l->device, with->stream)) {
    if (l->online.second_half) forget_pending(l);
    return run(l, l->online.incumbent, with);
  }
  hear(l);
  const wlmi_online_turn turn = wlmi_online_next(&l->online);
  if (wlmi_online_is_over(&l->online)) stop_learning(l);
  return turn.timed ? run_timed(l, turn.contender, with) : run(l, turn.contender, with);
}

wlm_status wlm_learner_execute(wlm_learner *learner, const void *b, void *c, void *stream) {
  return execute(learner, &(call){.kind = PRODUCT, .b = b, .c = c, .stream = stream});
}

wlm_status wlm_learner_execute_arg(wlm_learner *learner, const void *b, void *c, void *arg, void *stream) {
  return execute(learner, &(call){.kind = WITH_POSITIONS, .b = b, .c = c, .arg = arg, .stream = stream});
}

wlm_status wlm_learner_execute_sddmm(wlm_learner *learner, const void *dc, const void *b, void *dvalues, void *stream) {
  return execute(learner, &(call){.kind = EDGES, .x = dc, .b = b, .c = dvalues, .stream = stream});
}

wlm_status wlm_learner_tell(const wlm_learner *l, wlm_learner_state *state) {
  if (state->size != sizeof *state)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_learner_state.size is %zu, expected %zu: use the initialiser",
                     state->size, sizeof *state);
  const wlmi_online *o = &l->online;
  state->variant = l->contenders[o->incumbent].entrant.name;
  state->calls = o->calls;
  state->trials = o->trials;
  state->replacements = o->replacements;
  state->challengers = l->count - 1;
  state->settled = wlmi_online_is_over(o);
  state->first_seconds = o->first_seconds;
  state->seconds = wlmi_online_summarise(&o->contenders[o->incumbent]).median;
  state->lost_seconds = o->lost;
  return WLM_OK;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* A challenger that nothing was decided on would look better or worse than anyone knows. */
static int is_worth_keeping(const wlmi_online *o, int i) {
  const wlmi_online_contender *contender = &o->contenders[i];
  return contender->timed && (i == o->incumbent || contender->fate != WLM_ONLINE_WAITING);
}

static void describe(const wlm_learner *l, int i, wlmi_measurement_record *record) {
  const wlmi_contender *contender = &l->contenders[i];
  const wlmi_online_summary times = wlmi_online_summarise(&l->online.contenders[i]);
  /* The first incumbent was chosen, so its plan has the stats of op(A); a challenger that walks A has those of A. */
  const wlm_stats *stats = &l->contenders[0].entrant.plan->stats;
  wlmi_measured_begin(l->context, l->matrix_name, stats, l->problem, l->n, record);
  record->variant = (char *)contender->entrant.name;
  record->source_hash = (char *)contender->source_hash;
  record->clock = WLM_CLOCK_ONLINE;
  record->max_rel_err = contender->entrant.max_rel_err;
  wlmi_measured_time(record, times.median, times.spread, times.samples, 1);
  if (contender->entrant.prepared) record->prepare_ps = wlmi_picoseconds(contender->prepare_seconds);
}

/* One alone would make the matrix look as if it had been tuned. */
static wlm_status keep(const wlm_learner *l) {
  wlmi_measurement_record records[WLM_ONLINE_CONTENDERS];
  const char *path = wlmi_context_database_path(l->context);
  wlm_store *store = NULL;
  int64_t count = 0;
  wlm_status status;
  for (int i = 0; i < l->count; i++)
    if (is_worth_keeping(&l->online, i)) describe(l, i, &records[count++]);
  if (count < 2 || !*path) return WLM_OK;
  WLM_TRY(wlmi_store_open(path, WLM_STORE_WRITE, &store));
  WLM_TRY(wlmi_store_put(store, records, count));
  status = wlm_context_refresh(l->context);
done:
  wlmi_store_close(store);
  return status;
}

wlm_status wlm_learner_close(wlm_learner *l) {
  if (l->is_closed) return WLM_OK;
  if (l->is_learning) hear(l);
  stop_learning(l);
  l->is_closed = 1;
  const wlm_status noted = wlmi_context_write_notes(l->context);
  const wlm_status kept = keep(l);
  return kept == WLM_OK ? noted : kept;
}

void wlm_learner_destroy(wlm_learner *l) {
  if (!l) return;
  if (l->count && wlm_learner_close(l) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "what was learned is not stored: %s", wlm_error_detail());
  l->device->ops->synchronize(l->device, NULL);
  for (int i = 0; i < WLM_ONLINE_CONTENDERS; i++) wlmi_entrant_release(&l->contenders[i].entrant);
  for (int i = 0; i < 2; i++)
    if (l->watches[i]) l->device->ops->watch_destroy(l->watches[i]);
  wlmi_operands_release(&l->operands);
  wlmi_free(l->matrix_name);
  wlmi_free(l);
}
