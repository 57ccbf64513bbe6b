/* db list and diff: choices and pins as tables. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cli/db_actions.h"
#include "db/diff.h"

/* The name stands in the record that the choice's stats are part of. */
static const char *name_of(const wlm_choice *choice) {
  const char *stats = (const char *)choice->stats;
  const char *name = ((const wlm_measurement_record *)(stats - offsetof(wlm_measurement_record, stats)))->matrix_name;
  return name ? name : "";
}

static const char *winner(const wlm_choice *choice) {
  return choice && choice->count ? choice->candidates[0].variant : NULL;
}

static void put_time(wlm_table *table, const wlm_choice *choice) {
  const int known = winner(choice) != NULL;
  wlm_table_real(table, known ? "%.2f" : "-", known ? choice->candidates[0].cost * 1e-6 : NAN);
}

/* ---- db list ------------------------------------------------------------------------------------ */

static void list_choices(wlm_report *report, const wlm_class *classes, int64_t count) {
  static const wlm_table_column columns[] = {
      {"device", "device"}, {"matrix", "matrix"}, {"problem", "problem"},       {"n", "n"},
      {"choice", "choice"}, {"us", "us"},         {"candidates", "candidates"}, {"failed", "failed"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = 0; i < classes[k].choices.matrix_count; i++) {
      const wlm_choice *c = &classes[k].choices.matrices[i];
      wlm_table_text(&table, classes[k].records->device.name);
      wlm_table_text(&table, name_of(c));
      wlm_table_text(&table, c->problem);
      wlm_table_integer(&table, c->n);
      wlm_table_text(&table, winner(c));
      put_time(&table, c);
      wlm_table_integer(&table, c->count);
      wlm_table_integer(&table, c->failed);
    }
  wlm_report_table(report, "choices", &table);
  wlm_table_release(&table);
}

static void list_pins(wlm_report *report, const wlm_pin_record *pins, int64_t count) {
  static const wlm_table_column columns[] = {{"pin", "pinned for"},
                                             {"device_class", "device class"},
                                             {"problem", "problem"},
                                             {"n", "n"},
                                             {"variant", "variant"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t i = 0; i < count; i++) {
    wlm_table_text(&table, pins[i].place);
    wlm_table_text(&table, pins[i].device_class);
    wlm_table_text(&table, pins[i].problem);
    wlm_table_integer(&table, pins[i].n);
    wlm_table_text(&table, pins[i].variant);
  }
  if (count || report->json) wlm_report_table(report, "pins", &table);
  wlm_table_release(&table);
}

/* To be tuned by 'warploom tune --recorded'. */
static void list_recorded(wlm_report *report, const wlm_recorded *list, int64_t count) {
  static const wlm_table_column columns[] = {
      {"recorded", "recorded on"}, {"rows", "rows"}, {"cols", "cols"}, {"nnz", "nnz"}, {"cv", "cv"},
      {"problem", "problem"},      {"n", "n"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t i = 0; i < count; i++) {
    wlm_table_text(&table, list[i].device_class);
    wlm_table_integer(&table, list[i].stats.rows);
    wlm_table_integer(&table, list[i].stats.cols);
    wlm_table_integer(&table, list[i].stats.nnz);
    wlm_table_real(&table, "%.2f", list[i].stats.cv);
    wlm_table_text(&table, list[i].problem);
    wlm_table_integer(&table, list[i].n);
  }
  if (count || report->json) wlm_report_table(report, "recorded", &table);
  wlm_table_release(&table);
}

wlm_status wlm_db_list(const wlm_cli_options *options, wlm_report *report) {
  wlm_text path = {0};
  wlm_store *store = NULL;
  wlm_content content = {0};
  wlm_class *classes = NULL;
  int64_t class_count = 0;
  wlm_status status;
  WLM_TRY(wlm_cli_open_store(options, WLM_STORE_READ, &path, &store));
  wlm_report_string(report, "database", path.data);
  WLM_TRY(wlm_content_load(store, &content));
  WLM_TRY(wlm_classes_make(content.records, content.count, &classes, &class_count));
  wlm_report_integer(report, "measurements", content.count);
  list_choices(report, classes, class_count);
  list_pins(report, content.pins, content.pin_count);
  list_recorded(report, content.recorded, content.recorded_count);
done:
  wlm_classes_free(classes, class_count);
  wlm_content_release(&content);
  wlm_store_close(store);
  wlm_text_release(&path);
  return status;
}

/* ---- db diff ------------------------------------------------------------------------------------ */

static void tell_choices(wlm_report *report, const wlm_diff *diff) {
  static const wlm_table_column columns[] = {{"device_class", "device class"},
                                             {"matrix", "matrix"},
                                             {"problem", "problem"},
                                             {"n", "n"},
                                             {"a", "choice in A"},
                                             {"a_us", "us"},
                                             {"b", "choice in B"},
                                             {"b_us", "us"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t i = 0; i < diff->choice_count; i++) {
    const wlm_choice_difference *d = &diff->choices[i];
    const wlm_choice *any = d->a ? d->a : d->b;
    wlm_table_text(&table, d->device_class);
    wlm_table_text(&table, name_of(any));
    wlm_table_text(&table, any->problem);
    wlm_table_integer(&table, any->n);
    wlm_table_text(&table, winner(d->a));
    put_time(&table, d->a);
    wlm_table_text(&table, winner(d->b));
    put_time(&table, d->b);
  }
  if (diff->choice_count || report->json) wlm_report_table(report, "choices", &table);
  wlm_table_release(&table);
}

static void tell_pins(wlm_report *report, const wlm_diff *diff) {
  static const wlm_table_column columns[] = {{"pin", "pinned for"},  {"device_class", "device class"},
                                             {"problem", "problem"}, {"n", "n"},
                                             {"a", "variant in A"},  {"b", "variant in B"}};
  wlm_table table;
  wlm_table_begin(&table, columns, sizeof columns / sizeof *columns);
  for (int64_t i = 0; i < diff->pin_count; i++) {
    const wlm_pin_difference *d = &diff->pins[i];
    const wlm_pin_record *any = d->a ? d->a : d->b;
    wlm_table_text(&table, any->place);
    wlm_table_text(&table, any->device_class);
    wlm_table_text(&table, any->problem);
    wlm_table_integer(&table, any->n);
    wlm_table_text(&table, d->a ? d->a->variant : NULL);
    wlm_table_text(&table, d->b ? d->b->variant : NULL);
  }
  if (diff->pin_count || report->json) wlm_report_table(report, "pins", &table);
  wlm_table_release(&table);
}

wlm_status wlm_db_diff(const wlm_cli_options *options, wlm_report *report) {
  wlm_content contents[2] = {{0}, {0}};
  wlm_diff diff = {0};
  wlm_status status;
  for (int side = 0; side < 2; side++) {
    wlm_store *store;
    status = wlm_store_open(options->arguments[1 + side], WLM_STORE_READ, &store);
    if (status == WLM_OK) status = wlm_content_load(store, &contents[side]);
    wlm_store_close(store);
    WLM_TRY(status);
  }
  WLM_TRY(wlm_diff_make(&contents[0], &contents[1], &diff));
  wlm_report_flag(report, "same",
                  !diff.only_a && !diff.only_b && !diff.pin_count && !diff.recorded_only_a && !diff.recorded_only_b);
  wlm_report_integer(report, "only_in_a", diff.only_a);
  wlm_report_integer(report, "only_in_b", diff.only_b);
  wlm_report_integer(report, "in_both", diff.both);
  wlm_report_integer(report, "recorded_only_in_a", diff.recorded_only_a);
  wlm_report_integer(report, "recorded_only_in_b", diff.recorded_only_b);
  tell_choices(report, &diff);
  tell_pins(report, &diff);
done:
  wlm_diff_release(&diff);
  for (int side = 0; side < 2; side++) wlm_content_release(&contents[side]);
  return status;
}
