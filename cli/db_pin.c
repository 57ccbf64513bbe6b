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

/* What is pinned, and how. */
typedef struct task {
  wlmi_session session;
  wlm_store *store;    /* NULL: the variant is only checked */
  const char *variant; /* NULL = unpin */
  char place[WLMI_BUCKET_TEXT];
} task;

static wlm_status find_place(task *t, const char *where) {
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
    WLM_CHECK(wlmi_session_load(&t->session, where));
    WLM_CHECK(wlmi_matrix_fingerprint(t->session.matrix));
    const wlm_stats *stats = wlm_matrix_stats(t->session.matrix);
    fingerprint = (wlmi_hash){stats->fingerprint[0], stats->fingerprint[1]};
  }
  wlmi_hash_to_hex(fingerprint, t->place);
  return WLM_OK;
}

/* The specs of the session's N to which a pin applies: that of the matrix. The matrices of a bucket may have no values,
 * values of B's type, and with a 16-bit B also f32 values. */
enum { MAX_SPECS = 3 };
static wlm_status make_specs(const wlmi_session *session, wlmi_spec specs[MAX_SPECS], int *count) {
  const wlm_problem *problem = &session->problem;
  const wlmi_cli_options *o = session->options;
  const wlm_type type = problem->dense_type;
  *count = session->matrix ? 1 : type == WLM_F16 || type == WLM_BF16 ? 3 : 2;
  if (session->matrix) return wlmi_context_spec(session->context, session->matrix, problem, &specs[0]);
  for (int k = 0; k < *count; k++)
    WLM_CHECK(wlmi_cli_spec(problem, o->rowptr_type, o->colind_type, k < 2 ? type : WLM_F32, k > 0, &specs[k]));
  return WLM_OK;
}

static wlm_status check_variant(const task *t, const wlmi_spec *spec) {
  wlmi_text reason = {0};
  if (!t->variant) return WLM_OK;
  wlm_status status = wlmi_generator_refusal(wlmi_context_generator(t->session.context), t->variant, spec,
                                             &wlmi_context_device(t->session.context)->info.limits, &reason);
  if (status == WLM_OK && reason.size)
    status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s is no candidate for n = %lld: %s", t->variant,
                       (long long)spec->problem.n, reason.data);
  wlmi_text_release(&reason);
  return status;
}

static wlm_status write_pin(task *t, const wlmi_spec *spec) {
  char key[WLMI_SPEC_KEY];
  wlmi_spec_key(spec, key);
  const wlmi_pin_record pin = {(char *)wlmi_context_device_class(t->session.context), t->place, key, spec->problem.n,
                               (char *)(t->variant ? t->variant : "any")};
  return t->variant ? wlmi_store_pin(t->store, &pin) : wlmi_store_unpin(t->store, &pin);
}

/* Succeeds if a pin was there for at least one of several specs. */
static wlm_status do_width(task *t, int64_t n) {
  wlmi_spec specs[MAX_SPECS];
  int count, missing = 0;
  t->session.problem.n = n;
  WLM_CHECK(make_specs(&t->session, specs, &count));
  for (int k = 0; k < count; k++) {
    const wlm_status status = t->store ? write_pin(t, &specs[k]) : check_variant(t, &specs[k]);
    if (status != WLM_ERR_NOT_FOUND || ++missing == count) WLM_CHECK(status);
  }
  return WLM_OK;
}

static wlm_status find_variant(task *t, int64_t n, const char *variant, char name[WLMI_VARIANT_NAME]) {
  wlmi_spec specs[MAX_SPECS];
  int count;
  t->session.problem.n = n;
  WLM_CHECK(make_specs(&t->session, specs, &count));
  t->variant = name;
  return wlmi_family_best(t->session.context, t->session.matrix, &specs[0], variant, name);
}

/* Changes the pins of all N or of none; checks every N before the database is opened. */
static wlm_status pin_or_unpin(const wlmi_cli_options *options, wlmi_report *report, const char *variant) {
  wlmi_text path = {0}, widths = {0};
  wlm_status status;
  char name[WLMI_VARIANT_NAME];
  task task = {.store = NULL};
  WLM_TRY(wlmi_session_open(options, &task.session));
  WLM_TRY(find_place(&task, options->arguments[1]));
  if (variant) WLM_TRY(find_variant(&task, options->n[0], variant, name));
  for (int i = 0; i < options->n_count; i++) {
    WLM_TRY(do_width(&task, options->n[i]));
    wlmi_text_printf(&widths, "%s%lld", i ? "," : "", (long long)options->n[i]);
  }
  if (widths.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "list of widths"));
  WLM_TRY(variant ? wlmi_cli_open_store(options, WLMI_STORE_WRITE, &path, &task.store)
                  : wlmi_cli_open_to_change(options, &path, &task.store));
  WLM_TRY(wlmi_store_begin(task.store));
  for (int i = 0; i < options->n_count && status == WLM_OK; i++) status = do_width(&task, options->n[i]);
  WLM_TRY(wlmi_store_end(task.store, status));
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s device_class=%s", path.data,
                      wlmi_context_device_class(task.session.context));
  wlmi_report_string(report, variant ? "pinned_for" : "unpinned_for", task.place);
  wlmi_report_string(report, "n", widths.data);
  if (variant) wlmi_report_string(report, "variant", name);
done:
  wlmi_store_close(task.store);
  wlmi_text_release(&path);
  wlmi_text_release(&widths);
  wlmi_session_close(&task.session);
  return status;
}

wlm_status wlmi_cmd_db_pin(const wlmi_cli_options *options, wlmi_report *report) {
  return pin_or_unpin(options, report, options->arguments[2]);
}

wlm_status wlmi_cmd_db_unpin(const wlmi_cli_options *options, wlmi_report *report) {
  return pin_or_unpin(options, report, NULL);
}
