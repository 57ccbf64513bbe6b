/* db pin and unpin: fix a variant regardless of measurements. WHERE is an INPUT (this very matrix), or a bucket or
 * fingerprint as `warploom stats` prints it; the options give problem, widths and device. */
#include <string.h>

#include "cli/commands.h"
#include "cli/family.h"
#include "cli/problem.h"
#include "cli/session.h"
#include "core/base/hash.h"
#include "core/problem/bucket.h"
#include "db/store.h"

/* What is pinned: the matrix or bucket, and the specs of one N to which the pin applies. */
enum { MAX_SPECS = 3 };
typedef struct target {
  char place[WLM_BUCKET_TEXT];
  wlmi_spec specs[MAX_SPECS];
  int spec_count;
} target;

/* The matrices of a bucket may have no values, values of B's type, and with a 16-bit B also f32 values. */
static wlm_status specs_of_bucket(const wlmi_session *session, target *t) {
  const wlm_problem *problem = &session->problem;
  const int is_short = problem->dense_type == WLM_F16 || problem->dense_type == WLM_BF16;
  const struct {
    wlm_type type;
    int has_values;
  } values[MAX_SPECS] = {{problem->dense_type, 0}, {problem->dense_type, 1}, {WLM_F32, 1}};
  for (t->spec_count = 0; t->spec_count < 2 + is_short; t->spec_count++) {
    const wlm_status status =
        wlmi_cli_spec(problem, session->rowptr_type, session->colind_type, values[t->spec_count].type,
                      values[t->spec_count].has_values, &t->specs[t->spec_count]);
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

static wlm_status find_place(wlmi_session *session, const char *where, target *t) {
  wlmi_bucket bucket;
  wlmi_hash fingerprint;
  if (wlmi_bucket_parse(where, &bucket)) {
    if (wlmi_bucket_fault(&bucket))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: %s; warploom stats INPUT shows the bucket of a matrix", where,
                       wlmi_bucket_fault(&bucket));
    wlmi_bucket_print(&bucket, t->place);
    return WLM_OK;
  }
  if (!wlmi_hash_from_hex(where, &fingerprint)) {
    wlm_status status = wlmi_session_load(session, where);
    if (status == WLM_OK) status = wlmi_matrix_fingerprint(session->matrix);
    if (status != WLM_OK) return status;
    const wlm_stats *stats = wlm_matrix_stats(session->matrix);
    fingerprint = (wlmi_hash){stats->fingerprint[0], stats->fingerprint[1]};
  }
  wlmi_hash_to_hex(fingerprint, t->place);
  return WLM_OK;
}

static wlm_status make_specs(wlmi_session *session, target *t) {
  if (!session->matrix) return specs_of_bucket(session, t);
  t->spec_count = 1;
  return wlmi_context_spec(session->context, session->matrix, &session->problem, &t->specs[0]);
}

static wlm_status check_variant(wlmi_session *session, const char *variant, const wlmi_spec *spec) {
  wlmi_text reason = {0};
  wlm_status status = wlmi_generator_refusal(wlmi_context_generator(session->context), variant, spec,
                                             &wlmi_context_device(session->context)->info.limits, &reason);
  if (status == WLM_OK && reason.size)
    status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s is no candidate for n = %lld: %s", variant,
                       (long long)spec->problem.n, reason.data);
  wlmi_text_release(&reason);
  return status;
}

/* The action on each spec. */
typedef struct task {
  wlmi_session *session;
  wlm_store *store;
  const char *device_class, *variant; /* variant NULL = unpin */
  target target;
} task;

static wlm_status check(task *task, const wlmi_spec *spec) {
  return task->variant ? check_variant(task->session, task->variant, spec) : WLM_OK;
}

static wlm_status write_pin(task *task, const wlmi_spec *spec) {
  char key[WLM_SPEC_KEY];
  wlmi_spec_key(spec, key);
  const char *variant = task->variant ? task->variant : "any";
  const wlmi_pin_record pin = {(char *)task->device_class, task->target.place, key, spec->problem.n, (char *)variant};
  return task->variant ? wlmi_store_pin(task->store, &pin) : wlmi_store_unpin(task->store, &pin);
}

/* Runs the action for every N; it succeeds if it applies to at least one of several specs. */
static wlm_status each(task *task, const wlmi_cli_options *options,
                       wlm_status (*work)(struct task *, const wlmi_spec *)) {
  target *t = &task->target;
  for (int i = 0; i < options->n_count; i++) {
    int missing = 0;
    task->session->problem.n = options->n[i];
    wlm_status status = make_specs(task->session, t);
    for (int k = 0; k < t->spec_count && status == WLM_OK; k++) {
      status = work(task, &t->specs[k]);
      if (status == WLM_ERR_NOT_FOUND && ++missing < t->spec_count) status = WLM_OK;
    }
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

/* Checks every N before the first pin is written. */
static wlm_status pin_or_unpin(const wlmi_cli_options *options, wlmi_report *report, const char *variant) {
  wlmi_session session = {0};
  wlmi_text path = {0}, widths = {0};
  wlm_status status;
  char name[WLM_VARIANT_NAME];
  task task = {.session = &session, .variant = variant ? name : NULL};
  WLM_TRY(wlmi_session_open(options, &session));
  WLM_TRY(find_place(&session, options->arguments[1], &task.target));
  session.problem.n = options->n[0];
  WLM_TRY(make_specs(&session, &task.target));
  if (variant) WLM_TRY(wlmi_family_best(session.context, session.matrix, &task.target.specs[0], variant, name));
  WLM_TRY(each(&task, options, check));
  for (int i = 0; i < options->n_count; i++)
    wlmi_text_printf(&widths, "%s%lld", i ? "," : "", (long long)options->n[i]);
  if (widths.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "list of widths"));
  task.device_class = wlmi_context_device_class(session.context);
  WLM_TRY(wlmi_cli_open_store(options, WLM_STORE_WRITE, &path, &task.store));
  WLM_TRY(each(&task, options, write_pin));
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s device_class=%s", path.data, task.device_class);
  wlmi_report_string(report, variant ? "pinned_for" : "unpinned_for", task.target.place);
  wlmi_report_string(report, "n", widths.data);
  if (variant) wlmi_report_string(report, "variant", name);
done:
  wlmi_store_close(task.store);
  wlmi_text_release(&path);
  wlmi_text_release(&widths);
  wlmi_session_close(&session);
  return status;
}

wlm_status wlmi_cmd_db_pin(const wlmi_cli_options *options, wlmi_report *report) {
  return pin_or_unpin(options, report, options->arguments[2]);
}

wlm_status wlmi_cmd_db_unpin(const wlmi_cli_options *options, wlmi_report *report) {
  return pin_or_unpin(options, report, NULL);
}
