/* export, import and db: what was learned, without any device. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "db/choice.h"
#include "db/interchange.h"

/* The user database as the options say. */
static wlm_status open_store(const wlm_cli_options *options, wlm_store_mode mode, wlm_text *path, wlm_store **store) {
  *store = NULL;
  if (options->database && !*options->database)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "--db '' means no database; name one, or leave the option out");
  if (options->database) {
    wlm_text_puts(path, options->database);
  } else {
    wlm_status status = wlm_store_default_path(path);
    if (status != WLM_OK) return status;
  }
  return wlm_store_open(path->data, mode, store);
}

int wlm_cmd_export(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_text path = {0};
  wlm_store *store = NULL;
  wlm_store_counts counts;
  if (!options->output) {
    fputs("warploom export: say where to with -o FILE; - is standard output\n", stderr);
    return WLM_EXIT_USAGE;
  }
  WLM_TRY(open_store(options, WLM_STORE_READ, &path, &store));
  WLM_TRY(wlm_store_count(store, &counts));
  if (!strcmp(options->output, "-")) {
    WLM_TRY(wlm_store_export_file(store, stdout, "standard output"));
  } else {
    WLM_TRY(wlm_store_export_path(store, options->output));
    wlm_report_object(&report, NULL);
    wlm_report_string(&report, "database", path.data);
    wlm_report_string(&report, "file", options->output);
    wlm_report_integer(&report, "measurements", counts.measurements);
    wlm_report_close(&report);
  }
done:
  wlm_store_close(store);
  wlm_text_release(&path);
  return wlm_cli_finish(&report, status);
}

int wlm_cmd_import(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_text path = {0};
  wlm_store *store = NULL;
  wlm_store_counts counts;
  int64_t added = 0;
  const char *from = options->arguments[0];
  WLM_TRY(open_store(options, WLM_STORE_WRITE, &path, &store));
  if (!strcmp(from, "-"))
    WLM_TRY(wlm_store_import_file(store, stdin, "standard input", &added));
  else
    WLM_TRY(wlm_store_import_path(store, from, &added));
  WLM_TRY(wlm_store_count(store, &counts));
  wlm_report_object(&report, NULL);
  wlm_report_string(&report, "database", path.data);
  wlm_report_integer(&report, "added", added);
  wlm_report_integer(&report, "measurements", counts.measurements);
  wlm_report_close(&report);
done:
  wlm_store_close(store);
  wlm_text_release(&path);
  return wlm_cli_finish(&report, status);
}

/* ---- db list ------------------------------------------------------------------------------------ */

static int by_class(const void *left, const void *right) {
  wlm_text a = {0}, b = {0};
  wlm_device_class(&((const wlm_measurement_record *)left)->device, &a);
  wlm_device_class(&((const wlm_measurement_record *)right)->device, &b);
  int order = a.data && b.data ? strcmp(a.data, b.data) : 0;
  wlm_text_release(&a);
  wlm_text_release(&b);
  return order;
}

/* The name stands in the record that the choice's stats are part of. */
static const char *name_of(const wlm_choice *choice) {
  const char *stats = (const char *)choice->stats;
  const char *name = ((const wlm_measurement_record *)(stats - offsetof(wlm_measurement_record, stats)))->matrix_name;
  return name ? name : "";
}

static wlm_status add_class(wlm_table *table, const wlm_measurement_record *records, int64_t count) {
  wlm_choices choices;
  wlm_status status = wlm_choices_make(records, count, &choices);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < choices.matrix_count; i++) {
    const wlm_choice *c = &choices.matrices[i];
    wlm_table_text(table, records->device.name);
    wlm_table_text(table, name_of(c));
    wlm_table_text(table, c->problem);
    wlm_table_integer(table, c->n);
    wlm_table_text(table, c->count ? c->candidates[0].variant : NULL);
    wlm_table_real(table, c->count ? "%.2f" : "-", c->count ? c->candidates[0].cost * 1e-6 : NAN);
    wlm_table_integer(table, c->count);
    wlm_table_integer(table, c->failed);
  }
  wlm_choices_release(&choices);
  return WLM_OK;
}

static wlm_status list(wlm_store *store, wlm_report *report) {
  static const wlm_table_column columns[] = {
      {"device", "device"}, {"matrix", "matrix"}, {"problem", "problem"},       {"n", "n"},
      {"choice", "choice"}, {"us", "us"},         {"candidates", "candidates"}, {"failed", "failed"}};
  wlm_status status;
  wlm_table table;
  wlm_measurement_record *records = NULL;
  int64_t count = 0;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  WLM_TRY(wlm_store_load(store, NULL, &records, &count));
  if (count) qsort(records, (size_t)count, sizeof *records, by_class);
  for (int64_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && !by_class(&records[first], &records[end]);) end++;
    WLM_TRY(add_class(&table, records + first, end - first));
  }
  wlm_report_integer(report, "measurements", count);
  wlm_report_table(report, "choices", &table);
done:
  wlm_table_release(&table);
  wlm_measurements_free(records, count);
  return status;
}

static wlm_status check(wlm_store *store, wlm_report *report) {
  wlm_text faults = {0};
  wlm_store_counts counts = {0};
  wlm_status status = wlm_store_check(store, &faults);
  if (status == WLM_OK) status = wlm_store_count(store, &counts);
  if (faults.size) wlm_report_string(report, "faults", faults.data);
  if (status == WLM_OK) wlm_report_integer(report, "measurements", counts.measurements);
  if (status == WLM_OK) wlm_report_string(report, "check", "ok");
  wlm_text_release(&faults);
  return status;
}

int wlm_cmd_db(const wlm_cli_options *options) {
  static const struct {
    const char *name;
    wlm_status (*run)(wlm_store *store, wlm_report *report);
  } actions[] = {{"list", list}, {"check", check}};
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_text path = {0};
  wlm_store *store = NULL;
  size_t action = 0, count = sizeof actions / sizeof *actions;
  while (action < count && strcmp(actions[action].name, options->arguments[0])) action++;
  if (action == count) {
    fprintf(stderr, "warploom db: unknown action '%s'; say list or check\n", options->arguments[0]);
    return WLM_EXIT_USAGE;
  }
  WLM_TRY(open_store(options, WLM_STORE_READ, &path, &store));
  wlm_report_object(&report, NULL);
  wlm_report_string(&report, "database", path.data);
  status = actions[action].run(store, &report);
  wlm_report_close(&report);
done:
  wlm_store_close(store);
  wlm_text_release(&path);
  return wlm_cli_finish(&report, status);
}
