/* db candidates: every candidate of a device class as a table, with the ways of choosing that would take it. Reports
 * are made of it (bench/reports/). It uses no device, so measurements of other machines can be shown. */
#include <math.h>
#include <string.h>

#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "db/store.h"
#include "select/model.h"

/* "cuda:0" means any GPU, because the store does not number GPUs. */
static wlm_status choose_class(const wlmi_cli_options *options, const wlmi_class *classes, int64_t count,
                               const wlmi_class **chosen) {
  char part[256];
  snprintf(part, sizeof part, "%s", options->device ? options->device : "");
  part[strcspn(part, ":")] = 0;
  *chosen = NULL;
  for (int64_t i = 0; i < count; i++)
    if (strstr(classes[i].name, part) && (!*chosen || classes[i].count > (*chosen)->count)) *chosen = &classes[i];
  if (*chosen || !count) return WLM_OK;
  wlmi_text names = {0};
  for (int64_t i = 0; i < count; i++) wlmi_text_printf(&names, "%s%s", i ? ", " : "", classes[i].name);
  wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--device %s is part of no device class in the database: %s",
                                options->device, names.data ? names.data : "");
  wlmi_text_release(&names);
  return status;
}

/* Reads the newest model; it has the L2 size for which models of this class are trained. An unreadable one counts as
 * none. */
static wlm_status look_at_models(wlm_store *store, const char *device_class, int64_t *made_at, int64_t *l2_bytes) {
  wlmi_model_record *records = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_models(store, device_class, &records, &count);
  for (int64_t i = 0; i < count; i++) {
    wlmi_model model;
    if (records[i].made_at <= *made_at || wlmi_model_read(records[i].data, records[i].size, &model) != WLM_OK) continue;
    *made_at = records[i].made_at;
    *l2_bytes = model.limits.l2_bytes > 0 ? model.limits.l2_bytes : 1;
    wlmi_model_release(&model);
  }
  wlmi_model_records_free(records, count);
  return status;
}

static void put_ways(wlmi_table *table, const wlmi_choices *choices, const wlmi_measured *candidate) {
  char ways[96] = "";
  for (int way = 0; way < WLM_WAYS; way++)
    if (choices->chosen[way] == candidate) {
      if (*ways) strcat(ways, ", ");
      strcat(ways, wlmi_way_names[way]);
    }
  wlmi_table_text(table, ways);
}

static void put_candidate(wlmi_table *table, const wlmi_case *c, const wlmi_choices *choices, int64_t i) {
  const wlmi_measured *m = &c->candidates[i];
  char bucket[WLM_BUCKET_TEXT], id[WLM_HASH_HEX];
  wlmi_bucket_print(&c->bucket, bucket);
  wlmi_hash_to_hex((wlmi_hash){c->stats->fingerprint[0], c->stats->fingerprint[1]}, id);
  wlmi_table_text(table, c->matrix);
  wlmi_table_text(table, id);
  wlmi_table_text(table, bucket);
  wlmi_table_text(table, c->problem);
  wlmi_table_integer(table, c->n);
  wlmi_table_text(table, m->variant);
  wlmi_table_real(table, "%.2f", m->failed ? NAN : m->cost * 1e-6);
  wlmi_table_real(table, "%.2f", m->failed ? NAN : m->spread * 1e-6);
  wlmi_table_real(table, "%.2f", m->failed ? NAN : m->prepare * 1e-6);
  wlmi_table_integer(table, m->count);
  wlmi_table_text(table, m->failed ? "failed" : m->precise ? "measured" : "screened");
  put_ways(table, choices, m);
}

static void put_table(wlmi_report *report, const wlmi_class *of, const wlmi_choices *choices) {
  wlmi_table table;
  wlmi_table_begin(&table,
                   "matrix,fingerprint,bucket,problem,n,variant,us,spread_us=spread,prepare_us=prepare,"
                   "measurements,timed,chosen_by=chosen by");
  for (int64_t i = 0; of && i < of->choices.matrix_count; i++) {
    const wlmi_case *c = &of->choices.matrices[i];
    for (int64_t k = 0; k < c->count + c->failed; k++) put_candidate(&table, c, &choices[i], k);
  }
  wlmi_report_table(report, "candidates", &table, 0);
}

/* The time of each way's choices over that of the best unprepared candidate, where it has any. */
static void put_ways_table(wlmi_report *report, const wlmi_class *of, const wlmi_choices *choices) {
  wlmi_table table;
  wlmi_table_begin(&table, "way,cases,mean_over_best=mean,worst_over_best=worst");
  for (int way = 0; of && way < WLM_WAYS; way++) {
    double logs = 0, worst = 1;
    int64_t cases = 0;
    for (int64_t i = 0; i < of->choices.matrix_count; i++) {
      const wlmi_case *c = &of->choices.matrices[i];
      const wlmi_measured *chosen = choices[i].chosen[way];
      double best = INFINITY;
      for (int64_t k = 0; k < c->count; k++)
        if (!(c->candidates[k].prepare > 0)) best = fmin(best, c->candidates[k].cost);
      if (!chosen) continue;
      logs += log(chosen->cost / best);
      worst = fmax(worst, chosen->cost / best);
      cases++;
    }
    if (!cases) continue;
    wlmi_table_text(&table, wlmi_way_names[way]);
    wlmi_table_integer(&table, cases);
    wlmi_table_real(&table, "%.3f", exp(logs / (double)cases));
    wlmi_table_real(&table, "%.3f", worst);
  }
  wlmi_report_table(report, "ways", &table, 0);
}

wlm_status wlmi_cmd_db_candidates(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_content content = {0};
  wlmi_class *classes = NULL;
  const wlmi_class *chosen = NULL;
  wlmi_choices *choices = NULL;
  int64_t class_count = 0, l2_bytes = 0, trained_at = 0;
  wlm_status status;
  WLM_TRY(wlmi_cli_open_to_show(options, &path, &store));
  WLM_TRY(wlmi_content_load(store, &content));
  WLM_TRY(wlmi_classes_make(content.records, content.count, &classes, &class_count));
  WLM_TRY(choose_class(options, classes, class_count, &chosen));
  if (chosen) WLM_TRY(look_at_models(store, chosen->name, &trained_at, &l2_bytes));
  if (chosen) WLM_TRY(wlmi_choices_make(chosen, l2_bytes, &choices));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", path.data);
  wlmi_report_string(report, "device_class", chosen ? chosen->name : NULL);
  wlmi_report_integer(report, "trained_at", trained_at);
  put_table(report, chosen, choices);
  put_ways_table(report, chosen, choices);
  wlmi_report_close(report);
done:
  wlmi_free(choices);
  wlmi_classes_free(classes, class_count);
  wlmi_content_release(&content);
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
