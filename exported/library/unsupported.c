/* The functions of the public headers that an exported library does not have: those that measure, and that read and
 * write databases. */
#include "core/base/status.h"
#include "warploom/warploom_tune.h"

static wlm_status unsupported(const char *function) {
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: an exported library does not have it; use the full library", function);
}

wlm_status wlm_tune(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                    const wlm_execute_args *args, const wlm_tune_options *options) {
  return (void)context, (void)matrix, (void)problem, (void)args, (void)options, unsupported("wlm_tune");
}

wlm_status wlm_train(wlm_context *context) { return (void)context, unsupported("wlm_train"); }

wlm_status wlm_plan_create_online(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                  const wlm_online_options *options, wlm_plan **plan) {
  if (plan) *plan = NULL;
  return (void)context, (void)matrix, (void)problem, (void)options, unsupported("wlm_plan_create_online");
}

wlm_status wlm_plan_online_state(const wlm_plan *plan, wlm_online_state *state) {
  return (void)plan, (void)state, unsupported("wlm_plan_online_state");
}

wlm_status wlm_plan_online_close(wlm_plan *plan) { return (void)plan, unsupported("wlm_plan_online_close"); }

wlm_status wlm_export_path(wlm_context *context, const char *path) {
  return (void)context, (void)path, unsupported("wlm_export_path");
}

wlm_status wlm_export_string(wlm_context *context, char **text) {
  if (text) *text = NULL;
  return (void)context, unsupported("wlm_export_string");
}

wlm_status wlm_import_path(wlm_context *context, const char *path, int64_t *added) {
  if (added) *added = 0;
  return (void)context, (void)path, unsupported("wlm_import_path");
}

wlm_status wlm_import_string(wlm_context *context, const char *text, int64_t *added) {
  if (added) *added = 0;
  return (void)context, (void)text, unsupported("wlm_import_string");
}
