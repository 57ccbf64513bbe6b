/* train: trains the cost models on the database. `tune` does so at its end; this command is for imported measurements.
 */
#include <math.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "tuner/train.h"

static void tell_classes(wlmi_report *report, const wlmi_models *models) {
  wlmi_table table;
  wlmi_table_begin(&table, "problems,matrices,cases,trained=,measurements,spread=,=model");
  for (int64_t i = 0; i < models->class_count; i++) {
    const wlmi_taught *c = &models->classes[i];
    const wlmi_model *model = c->model >= 0 ? &models->models[c->model] : NULL;
    char outcome[64];
    if (model)
      snprintf(outcome, sizeof outcome, "trained, off by %.0f %%", 100 * (exp(model->spread) - 1));
    else
      snprintf(outcome, sizeof outcome, "none: it takes %d matrices", WLMI_TRAIN_MATRICES);
    wlmi_table_add(&table, "%s %jd %jd", c->problems, c->matrices, c->cases);
    wlmi_table_flag(&table, model != NULL);
    wlmi_table_add(&table, "%jd %g %s", model ? model->measurements : 0, model ? model->spread : NAN, outcome);
  }
  wlmi_report_table(report, "classes", &table, 0);
}

wlm_status wlmi_cmd_train(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_session session = {0};
  wlmi_models models = {0};
  wlm_status status;
  WLM_TRY(wlmi_session_open(options, &session));
  WLM_TRY(wlmi_learn(session.context, &models));
  wlmi_report_object(report, NULL);
  wlmi_report_device(report, session.context);
  wlmi_report_members(report, "database=%s models=%jd", wlmi_context_database_path(session.context), models.count);
  if (report->json) wlmi_report_integer(report, "needed", WLMI_TRAIN_MATRICES);
  if (models.class_count || report->json)
    tell_classes(report, &models);
  else
    wlmi_report_line(report, "nothing was measured on such a device; tune it, or import what was measured elsewhere");
done:
  wlmi_models_release(&models);
  wlmi_session_close(&session);
  return status;
}
