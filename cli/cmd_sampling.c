/* explain, for files of warploom.torch.calibrate: the time of each setting that was measured against what it loses. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/curve.h"
#include "cli/left_out.h"
#include "cli/progress.h"
#include "cli/sampling_file.h"
#include "core/base/memory.h"

enum { POINTS = 100 }; /* of a share that is 1 */

/* ---- the curve ---- */

/* Losses far above the budget would leave little room for the others. */
static double top_of(const wlmi_sampling_file *file) {
  double most = 1.25 * file->budget;
  for (int64_t i = 0; i < file->tried_count; i++) most = fmax(most, file->tried[i].loss);
  return POINTS * fmin(most, 4 * file->budget);
}

static void set_point(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, wlmi_curve_point *point) {
  wlmi_text widths = {0};
  wlmi_sampling_widths(file, tried, &widths);
  *point = (wlmi_curve_point){tried->us / 1e3, POINTS * tried->loss, tried->is_chosen ? '*' : '+', ""};
  if (!widths.failed && widths.size < sizeof point->label) strcpy(point->label, widths.data);
  wlmi_text_release(&widths);
}

static int chosen_last(const void *a, const void *b) {
  const wlmi_curve_point *x = a, *y = b;
  return (x->mark == '*') - (y->mark == '*');
}

static wlm_status put_curve(const wlmi_sampling_file *file, wlmi_report *report) {
  wlm_status status;
  wlmi_curve_point *points = NULL;
  wlmi_text text = {0};
  if (!file->tried_count) return WLM_OK;
  WLM_TRY(wlmi_alloc_array(file->tried_count, sizeof *points, "points", (void **)&points));
  for (int64_t i = 0; i < file->tried_count; i++) set_point(file, &file->tried[i], &points[i]);
  qsort(points, (size_t)file->tried_count, sizeof *points, chosen_last);
  const wlmi_curve curve = {
      points, file->tried_count, POINTS * file->budget, top_of(file), "ms", wlmi_terminal_columns(STDOUT_FILENO)};
  wlmi_text_printf(&text, "points lost of %s, over the time of one inference; numbers: S of the layers\n",
                   file->metric);
  wlmi_curve_print(&curve, &text);
  wlmi_text_puts(&text, "* chosen   + measured   ^ loses more   - budget\n");
  if (text.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the curve"));
  wlmi_report_block(report, text.data);
done:
  wlmi_text_release(&text);
  wlmi_free(points);
  return status;
}

/* ---- the tables ---- */

static void put_sentences(const wlmi_sampling_file *file, wlmi_report *report) {
  if (report->json) {
    wlmi_report_members(report,
                        "metric=%s budget=%.4g confidence=%.4g loss=%.4g bound=%.4g us=%.1f exact_us=%.1f device=%s "
                        "model=%s",
                        file->metric, file->budget, file->confidence, file->loss, file->bound, file->us, file->exact_us,
                        file->device, file->model);
    return;
  }
  wlmi_report_line(report, "%s: loses %.2f points of the %.2f allowed (at most %.2f with %g %% confidence)",
                   file->metric, POINTS * file->loss, POINTS * file->budget, POINTS * file->bound,
                   POINTS * file->confidence);
  wlmi_report_line(report, "inference: %.3g ms, %.1f times as fast as with all edges (%.3g ms)", file->us / 1e3,
                   file->exact_us / file->us, file->exact_us / 1e3);
}

static void put_layers(const wlmi_sampling_file *file, wlmi_report *report) {
  wlmi_table table;
  wlmi_table_begin(&table, "layer,sample,expected=variance: expected,measured,worst=most in rows");
  for (int64_t i = 0; i < file->layer_count; i++) {
    const wlmi_sampling_layer *layer = &file->layers[i];
    wlmi_text sample = {0}, worst = {0};
    wlmi_sampling_layer_text(layer, &sample);
    wlmi_sampling_worst_rows(layer, &worst);
    wlmi_table_text(&table, *layer->name ? layer->name : "the model");
    wlmi_table_text(&table, sample.data);
    wlmi_table_real(&table, isnan(layer->expected) ? "" : "%.3g", layer->expected);
    wlmi_table_real(&table, isnan(layer->measured) ? "" : "%.3g", layer->measured);
    wlmi_table_text(&table, worst.data ? worst.data : "");
    wlmi_text_release(&sample);
    wlmi_text_release(&worst);
  }
  wlmi_report_table(report, "layers", &table, 0);
}

static void put_settings(const wlmi_sampling_file *file, wlmi_report *report) {
  wlmi_table table;
  wlmi_table_begin(&table, "us,loss_points=loss,bound_points=bound,setting=,=setting,chosen=");
  for (int64_t i = 0; i < file->tried_count; i++) {
    const wlmi_sampling_tried *tried = &file->tried[i];
    wlmi_text setting = {0};
    wlmi_sampling_text(file, tried, &setting);
    wlmi_table_real(&table, "%.0f", tried->us);
    wlmi_table_real(&table, "%.2f", POINTS * tried->loss);
    wlmi_table_real(&table, "%.2f", POINTS * tried->bound);
    wlmi_table_text(&table, setting.data);
    if (tried->is_chosen) wlmi_text_puts(&setting, "  <- chosen");
    wlmi_table_text(&table, setting.data);
    wlmi_table_flag(&table, tried->is_chosen);
    wlmi_text_release(&setting);
  }
  wlmi_report_table(report, "settings", &table, 0);
}

/* ---- the command ---- */

static wlm_status explain_file(const wlmi_cli_options *options, const char *path, wlmi_report *report) {
  wlm_status status;
  wlmi_sampling_file file;
  WLM_TRY(wlmi_sampling_file_read(path, &file));
  wlmi_report_object(report, NULL);
  if (report->json || options->argument_count > 1) wlmi_report_string(report, "input", path);
  put_sentences(&file, report);
  if (!report->json) WLM_TRY(put_curve(&file, report));
  wlmi_report_line(report, "%s", "");
  put_layers(&file, report);
  wlmi_report_line(report, "%s", "");
  put_settings(&file, report);
  wlmi_report_close(report);
done:
  wlmi_sampling_file_release(&file);
  return status;
}

int wlmi_explains_samplings(const wlmi_cli_options *options) {
  for (int i = 0; i < options->argument_count; i++)
    if (wlmi_sampling_file_is(options->arguments[i])) return 1;
  return 0;
}

wlm_status wlmi_cmd_explain_sampling(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_left_out left_out = {.count = 0};
  wlm_status status = WLM_OK;
  for (int i = 0; i < options->argument_count && status == WLM_OK; i++) {
    status = explain_file(options, options->arguments[i], report);
    if (status != WLM_OK) status = wlmi_left_out_add(&left_out, options, options->arguments[i], status, report);
    if (!wlmi_report_flush(report)) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the result's text");
  }
  return wlmi_left_out_end(&left_out, options, status, report);
}
