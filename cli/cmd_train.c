/* train: what was measured becomes a model. `tune` does the same at its end; this is for what was imported. */
#include "cli/commands.h"
#include "cli/session.h"
#include "runtime/context.h"

int wlm_cmd_train(const wlm_cli_options *options) {
  wlm_report report = {.json = options->json};
  wlm_session session = {0};
  wlm_status status;
  WLM_TRY(wlm_session_open(options, &session));
  WLM_TRY(wlm_train(session.context));
  wlm_report_object(&report, NULL);
  wlm_report_device(&report, session.context);
  wlm_report_string(&report, "database", wlm_context_database_path(session.context));
  wlm_report_close(&report);
done:
  wlm_session_close(&session);
  return wlm_cli_finish(&report, status);
}
