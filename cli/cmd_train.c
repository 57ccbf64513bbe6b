/* train: what was measured becomes a model. `tune` does the same at its end; this is for what was imported. */
#include <math.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "tuner/learn.h"

static void tell_classes(wlm_report *report, const wlm_models *models) {
  static const wlm_table_column columns[] = {
      {"problems", "problems"},         {"matrices", "matrices"}, {"cases", "cases"}, {"trained", NULL},
      {"measurements", "measurements"}, {"spread", NULL},         {NULL, "model"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t i = 0; i < models->class_count; i++) {
    const wlm_taught *c = &models->classes[i];
    const wlm_model *model = c->model >= 0 ? &models->models[c->model] : NULL;
    char outcome[64];
    if (model)
      snprintf(outcome, sizeof outcome, "trained, off by %.0f %%", 100 * (exp(model->spread) - 1));
    else
      snprintf(outcome, sizeof outcome, "none: it takes %d matrices", WLM_TRAIN_MATRICES);
    wlm_table_text(&table, c->problems);
    wlm_table_integer(&table, c->matrices);
    wlm_table_integer(&table, c->cases);
    wlm_table_flag(&table, model != NULL);
    wlm_table_integer(&table, model ? model->measurements : 0);
    wlm_table_real(&table, "%g", model ? model->spread : NAN);
    wlm_table_text(&table, outcome);
  }
  wlm_report_table(report, "classes", &table);
  wlm_table_release(&table);
}

int wlm_cmd_train(const wlm_cli_options *options) {
  wlm_report report = {.json = options->json};
  wlm_session session = {0};
  wlm_models models = {0};
  wlm_status status;
  WLM_TRY(wlm_session_open(options, &session));
  WLM_TRY(wlm_learn(session.context, &models));
  wlm_report_object(&report, NULL);
  wlm_report_device(&report, session.context);
  wlm_report_string(&report, "database", wlm_context_database_path(session.context));
  wlm_report_integer(&report, "models", models.count);
  if (report.json) wlm_report_integer(&report, "needed", WLM_TRAIN_MATRICES);
  if (models.class_count || report.json)
    tell_classes(&report, &models);
  else
    wlm_report_line(&report, "nothing was measured on such a device; tune it, or import what was measured elsewhere");
  wlm_report_close(&report);
done:
  wlm_models_release(&models);
  wlm_session_close(&session);
  return wlm_cli_finish(&report, status);
}
