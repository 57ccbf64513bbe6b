/* A plan that tunes while it is executed: the path of a call, and closing the plan. online_policy.c decides which
 * kernel runs and what its times mean; online_gather.c chooses the kernels to try.
 *
 * A call never waits. It asks for the times of earlier calls, which the device may not have yet, and enqueues one
 * kernel, between two marks on the stream if it is timed. Once nothing is left to try, a call is a plain execute. */
#include <math.h>

#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/problem/structs.h"
#include "db/store.h"
#include "tuner/online_state.h"
#include "tuner/timing.h"
#include "warploom/warploom_tune.h"

/* ---- making ------------------------------------------------------------------------------------------- */

static wlm_status check_options(const wlm_online_options *o) {
  if (!(o->share > 0 && o->share <= 0.5))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_online_options.share is %g, must be above 0 and at most 0.5",
                     o->share);
  if (!isfinite(o->slowdown) || o->slowdown < 0)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_online_options.slowdown is %g, must be at least 0", o->slowdown);
  if (!isfinite(o->abandon) || o->abandon <= 1)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_online_options.abandon is %g, must be above 1", o->abandon);
  if (o->challengers < 0 || o->challengers >= WLMI_ONLINE_CONTENDERS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_online_options.challengers is %d, must be 0 to %d", o->challengers,
                     WLMI_ONLINE_CONTENDERS - 1);
  return WLM_OK;
}

static void begin(wlmi_online_mode *m) {
  const wlmi_online_rules rules = {m->options.share, m->options.slowdown, m->options.abandon};
  double expected[WLMI_ONLINE_CONTENDERS];
  for (int i = 0; i < m->count; i++) {
    const double ratio = m->contenders[i].estimate / m->contenders[0].estimate;
    expected[i] = isfinite(ratio) && ratio > 0 ? ratio : 1; /* the clock was too coarse */
  }
  wlmi_online_begin(&m->online, &rules, expected, m->count);
  m->is_tuning = m->count > 1;
}

static wlm_status make(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                       const wlm_online_options *options, wlmi_online_mode *m) {
  wlmi_matrix_view view;
  m->context = context;
  m->device = wlmi_context_device(context);
  m->options = *options;
  m->matrix_name = wlmi_strdup(options->matrix_name);
  if (options->matrix_name && !m->matrix_name) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "plan");
  for (int i = 0; i < 2; i++) WLM_CHECK(m->device->ops->watch_create(m->device, &m->watches[i]));
  WLM_CHECK(wlmi_matrix_fingerprint(matrix));         /* the measurements are stored with it */
  WLM_CHECK(wlmi_matrix_see(matrix, problem, &view)); /* online tuning means many calls, so A^T is built */
  WLM_CHECK(wlmi_online_gather(m, matrix, problem));
  m->options.first = m->options.matrix_name = NULL; /* the caller's strings, not needed any more */
  begin(m);
  return WLM_OK;
}

/* ---- a call -------------------------------------------------------------------------------------------- */

static wlm_status run(const wlmi_online_mode *m, int contender, const wlm_execute_args *args) {
  const wlmi_method *method = &m->contenders[contender].method;
  wlm_execute_args own = *args;
  own.workspace = wlmi_method_workspace(method);
  own.workspace_size = wlm_plan_workspace_size(method->plan);
  own.prepared = NULL;
  return wlm_plan_execute(method->plan, &own);
}

static void forget_pending(wlmi_online_mode *m) {
  wlmi_online_withdraw(&m->online);
  m->pending = 0;
}

static void stop_tuning(wlmi_online_mode *m) {
  if (m->pending) forget_pending(m);
  m->is_tuning = 0;
}

/* Reads the times that the device has finished. */
static void read_times(wlmi_online_mode *m) {
  const wlmi_device_ops *ops = m->device->ops;
  while (m->pending) {
    int done = 0;
    double seconds = 0;
    if (ops->watch_poll(m->watches[0], &done, &seconds) != WLM_OK) return stop_tuning(m);
    if (!done) return;
    wlmi_watch *watch = m->watches[0];
    const int whose = m->timed[0];
    m->watches[0] = m->watches[1]; /* this one may still be running */
    m->timed[0] = m->timed[1];
    m->watches[1] = watch;
    m->pending--;
    wlmi_online_add_time(&m->online, whose, seconds);
    if (!m->online.in_flight) m->pending = 0; /* a time without meaning invalidates its pair */
  }
}

/* A kernel that the device refuses is not tried again; this call then runs the incumbent. */
static wlm_status run_timed(wlmi_online_mode *m, int contender, const wlm_execute_args *args) {
  const wlmi_device_ops *ops = m->device->ops;
  wlmi_watch *watch = m->watches[m->pending];
  if (ops->watch_start(watch, args->stream) != WLM_OK) {
    stop_tuning(m);
    return run(m, m->online.incumbent, args);
  }
  const wlm_status status = run(m, contender, args);
  if (status == WLM_ERR_DEVICE && contender != m->online.incumbent) {
    m->pending = 0;
    wlmi_online_exclude(&m->online, contender);
    return run(m, m->online.incumbent, args);
  }
  if (status != WLM_OK) {
    forget_pending(m);
    return status;
  }
  if (ops->watch_stop(watch, args->stream) != WLM_OK)
    stop_tuning(m);
  else
    m->timed[m->pending++] = contender;
  return WLM_OK;
}

static wlm_status execute(const wlm_plan *plan, const wlm_execute_args *args) {
  wlmi_online_mode *m = plan->mode_data;
  if (!m->is_tuning) {
    m->online.calls++;
    return run(m, m->online.incumbent, args);
  }
  if (m->device->ops->is_captured(m->device, args->stream)) {
    if (m->online.second_half) forget_pending(m);
    return run(m, m->online.incumbent, args);
  }
  read_times(m);
  const wlmi_online_turn turn = wlmi_online_next(&m->online);
  if (wlmi_online_is_over(&m->online)) stop_tuning(m);
  return turn.timed ? run_timed(m, turn.contender, args) : run(m, turn.contender, args);
}

static const wlm_plan *current(const wlm_plan *plan) {
  const wlmi_online_mode *m = plan->mode_data;
  return m->contenders[m->online.incumbent].method.plan;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Whether a contender's times are stored: not those of a challenger that was neither accepted nor rejected, because
 * they are uncertain. */
static int is_worth_keeping(const wlmi_online *o, int i) {
  const wlmi_online_contender *contender = &o->contenders[i];
  return contender->timed && (i == o->incumbent || contender->fate != WLMI_ONLINE_WAITING);
}

static void describe(const wlmi_online_mode *m, int i, wlmi_measurement_record *record) {
  const wlmi_contender *contender = &m->contenders[i];
  const wlmi_online_summary times = wlmi_online_summarise(&m->online.contenders[i]);
  /* The first contender was chosen, so its plan has the stats of op(A); a challenger that walks A has those of A. */
  const wlm_stats *stats = &m->contenders[0].method.plan->reason.stats;
  wlmi_measured_begin(m->context, m->matrix_name, stats, m->problem, m->n, contender->method.name, record);
  record->clock = WLMI_CLOCK_ONLINE;
  record->max_rel_err = contender->method.max_rel_err;
  wlmi_measured_time(record, times.median, times.spread, times.samples, 1);
  if (contender->method.prepared) record->prepare_ps = wlmi_picoseconds(contender->prepare_seconds);
}

/* Stores the times of the contenders. A single one is not stored, because the matrix would then count as tuned. */
static wlm_status keep(const wlmi_online_mode *m) {
  wlmi_measurement_record records[WLMI_ONLINE_CONTENDERS];
  const char *path = wlmi_context_database_path(m->context);
  wlm_store *store = NULL;
  int64_t count = 0;
  wlm_status status;
  for (int i = 0; i < m->count; i++)
    if (is_worth_keeping(&m->online, i)) describe(m, i, &records[count++]);
  if (count < 2 || !*path) return WLM_OK;
  WLM_TRY(wlmi_store_open(path, WLMI_STORE_WRITE, &store));
  WLM_TRY(wlmi_store_put(store, records, count));
  status = wlm_context_refresh(m->context);
done:
  wlmi_store_close(store);
  return status;
}

static wlm_status close_mode(wlmi_online_mode *m) {
  if (m->is_closed) return WLM_OK;
  if (m->is_tuning) read_times(m);
  stop_tuning(m);
  m->is_closed = 1;
  const wlm_status kept = keep(m);
  const wlm_status noted = wlmi_context_write_recorded(m->context);
  return kept == WLM_OK ? noted : kept;
}

static void destroy(wlm_plan *plan) {
  wlmi_online_mode *m = plan->mode_data;
  plan->mode_data = NULL;
  if (!m) return;
  if (m->count && close_mode(m) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "the times of online tuning are not stored: %s", wlm_error_detail());
  m->device->ops->synchronize(m->device, NULL);
  for (int i = 0; i < WLMI_ONLINE_CONTENDERS; i++) wlmi_method_release(&m->contenders[i].method);
  for (int i = 0; i < 2; i++)
    if (m->watches[i]) m->device->ops->watch_destroy(m->watches[i]);
  wlmi_operands_release(&m->operands);
  wlmi_free(m->matrix_name);
  wlmi_free(m);
}

/* ---- the API ------------------------------------------------------------------------------------------- */

static const wlmi_plan_mode online = {.execute = execute, .destroy = destroy, .current = current};

wlm_status wlm_plan_create_online(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                  const wlm_online_options *options, wlm_plan **out) {
  wlm_online_options o = WLM_ONLINE_OPTIONS_INIT;
  wlm_problem p;
  wlm_plan *plan = NULL;
  wlm_status status;
  if (out) *out = NULL;
  WLM_TRY(wlmi_need("wlm_plan_create_online", "context matrix problem plan", context, matrix, problem, out));
  WLM_TRY(wlmi_matrix_with_arrays(matrix, context, "wlm_plan_create_online"));
  WLM_TRY(wlmi_struct_read(&wlmi_struct_problem, problem, &p));
  if (p.b_order || p.c_order)
    WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED,
                      "wlm_plan_create_online: kernels are compared on row-major B and C; leave "
                      "wlm_problem.b_order and c_order at WLM_ROW_MAJOR"));
  WLM_TRY(wlmi_check_comparable(&p));
  if (options) WLM_TRY(wlmi_struct_read(&wlmi_struct_online_options, options, &o));
  WLM_TRY(check_options(&o));
  plan = wlmi_alloc_zero(1, sizeof *plan);
  wlmi_online_mode *m = plan ? wlmi_alloc_zero(1, sizeof *m) : NULL;
  if (!m) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "plan"));
  m->device = plan->device = wlmi_context_device(context);
  plan->mode = &online;
  plan->mode_data = m;
  const int threads = wlmi_threads_begin();
  status = make(context, matrix, &p, &o, m);
  wlmi_threads_end(threads);
  if (status != WLM_OK) goto done;
  *out = plan;
  plan = NULL;
done:
  wlm_plan_destroy(plan);
  return wlmi_finish(status);
}

static wlm_status find_mode(const char *call, const wlm_plan *plan, wlmi_online_mode **mode) {
  if (plan->mode != &online)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "%s: the plan does not tune online: create it with wlm_plan_create_online", call);
  *mode = plan->mode_data;
  return WLM_OK;
}

wlm_status wlm_plan_online_state(const wlm_plan *plan, wlm_online_state *state) {
  wlm_online_state known = WLM_ONLINE_STATE_INIT;
  wlmi_online_mode *m = NULL;
  WLM_CHECK(wlmi_need("wlm_plan_online_state", "plan state", plan, state));
  WLM_CHECK(find_mode("wlm_plan_online_state", plan, &m));
  const wlmi_online *o = &m->online;
  known.variant = m->contenders[o->incumbent].method.name;
  known.calls = o->calls;
  known.trials = o->trials;
  known.replacements = o->replacements;
  known.challengers = m->count - 1;
  known.settled = wlmi_online_is_over(o);
  known.first_seconds = o->first_seconds;
  known.seconds = wlmi_online_summarise(&o->contenders[o->incumbent]).median;
  known.lost_seconds = o->lost;
  return wlmi_finish(wlmi_struct_write(&wlmi_struct_online_state, &known, state));
}

wlm_status wlm_plan_online_close(wlm_plan *plan) {
  wlmi_online_mode *m = NULL;
  WLM_CHECK(wlmi_need("wlm_plan_online_close", "plan", plan));
  WLM_CHECK(find_mode("wlm_plan_online_close", plan, &m));
  return wlmi_finish(close_mode(m));
}
