/* db list and diff: choices and pins as tables. */
#include <math.h>
#include <stddef.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "db/diff.h"

/* The matrix name is in the record that contains the choice's stats. */
static const char *name_of(const wlmi_case *choice) {
  const char *stats = (const char *)choice->stats;
  const char *name = ((const wlmi_measurement_record *)(stats - offsetof(wlmi_measurement_record, stats)))->matrix_name;
  return name ? name : "";
}

static const char *winner(const wlmi_case *choice) {
  return choice && choice->count ? choice->candidates[0].variant : NULL;
}

static double winners_us(const wlmi_case *choice) { return winner(choice) ? choice->candidates[0].cost * 1e-6 : NAN; }

/* ---- db list ------------------------------------------------------------------------------------ */

static void list_choices(wlmi_report *report, const wlmi_class *classes, int64_t count) {
  wlmi_table table;
  wlmi_table_begin(&table, "device,matrix,problem,n,choice,us,candidates,failed");
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = 0; i < classes[k].choices.count; i++) {
      const wlmi_case *c = &classes[k].choices.list[i];
      wlmi_table_add(&table, "%s %s %s %jd %s %.2f %jd %jd", classes[k].records->device.name, name_of(c), c->problem,
                     c->n, winner(c), winners_us(c), c->count, c->failed);
    }
  wlmi_report_table(report, "choices", &table, 0);
}

static void list_pins(wlmi_report *report, const wlmi_pin_record *pins, int64_t count) {
  wlmi_table table;
  wlmi_table_begin(&table, "pin=pinned for,device_class=device class,problem,n,variant");
  for (int64_t i = 0; i < count; i++) {
    wlmi_table_add(&table, "%s %s %s %jd %s", pins[i].target, pins[i].device_class, pins[i].problem, pins[i].n,
                   pins[i].variant);
  }
  wlmi_report_table(report, "pins", &table, !count);
}

/* To be tuned by 'warploom tune --recorded'. */
static void list_recorded(wlmi_report *report, const wlmi_recorded *list, int64_t count) {
  wlmi_table table;
  wlmi_table_begin(&table, "recorded=recorded on,rows,cols,nnz,cv,problem,n");
  for (int64_t i = 0; i < count; i++) {
    wlmi_table_add(&table, "%s %jd %jd %jd %.2f %s %jd", list[i].device_class, list[i].stats.rows, list[i].stats.cols,
                   list[i].stats.nnz, list[i].stats.cv, list[i].problem, list[i].n);
  }
  wlmi_report_table(report, "recorded", &table, !count);
}

wlm_status wlmi_cmd_db_list(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_content content = {0};
  wlmi_class *classes = NULL;
  int64_t class_count = 0;
  wlm_status status;
  WLM_TRY(wlmi_cli_open_to_show(options, &path, &store));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", path.data);
  WLM_TRY(wlmi_content_load(store, &content));
  WLM_TRY(wlmi_classes_make(content.records, content.count, &classes, &class_count));
  wlmi_report_integer(report, "measurements", content.count);
  list_choices(report, classes, class_count);
  list_pins(report, content.pins, content.pin_count);
  list_recorded(report, content.recorded, content.recorded_count);
done:
  wlmi_classes_free(classes, class_count);
  wlmi_content_release(&content);
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}

/* ---- db diff ------------------------------------------------------------------------------------ */

static void tell_choices(wlmi_report *report, const wlmi_diff *diff) {
  wlmi_table table;
  wlmi_table_begin(&table,
                   "device_class=device class,matrix,problem,n,a=choice in A,a_us=us,b=choice in B,"
                   "b_us=us");
  for (int64_t i = 0; i < diff->choice_count; i++) {
    const wlmi_choice_difference *d = &diff->choices[i];
    const wlmi_case *any = d->a ? d->a : d->b;
    wlmi_table_add(&table, "%s %s %s %jd %s %.2f %s %.2f", d->device_class, name_of(any), any->problem, any->n,
                   winner(d->a), winners_us(d->a), winner(d->b), winners_us(d->b));
  }
  wlmi_report_table(report, "choices", &table, !diff->choice_count);
}

static void tell_pins(wlmi_report *report, const wlmi_diff *diff) {
  wlmi_table table;
  wlmi_table_begin(&table, "pin=pinned for,device_class=device class,problem,n,a=variant in A,b=variant in B");
  for (int64_t i = 0; i < diff->pin_count; i++) {
    const wlmi_pin_difference *d = &diff->pins[i];
    const wlmi_pin_record *any = d->a ? d->a : d->b;
    wlmi_table_add(&table, "%s %s %s %jd %s %s", any->target, any->device_class, any->problem, any->n,
                   d->a ? d->a->variant : NULL, d->b ? d->b->variant : NULL);
  }
  wlmi_report_table(report, "pins", &table, !diff->pin_count);
}

wlm_status wlmi_cmd_db_diff(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_content contents[2] = {{0}, {0}};
  wlmi_diff diff = {0};
  wlm_status status;
  for (int side = 0; side < 2; side++) {
    wlm_store *store;
    status = wlmi_store_open(options->arguments[1 + side], WLMI_STORE_READ, &store);
    if (status == WLM_OK) status = wlmi_content_load(store, &contents[side]);
    wlmi_store_close(store);
    WLM_TRY(status);
  }
  WLM_TRY(wlmi_diff_make(&contents[0], &contents[1], &diff));
  wlmi_report_object(report, NULL);
  wlmi_report_flag(report, "same",
                   !diff.measurements.only_a && !diff.measurements.only_b && !diff.pin_count && !diff.recorded.only_a &&
                       !diff.recorded.only_b);
  wlmi_report_members(report, "only_in_a=%jd only_in_b=%jd in_both=%jd recorded_only_in_a=%jd recorded_only_in_b=%jd",
                      diff.measurements.only_a, diff.measurements.only_b, diff.measurements.both, diff.recorded.only_a,
                      diff.recorded.only_b);
  tell_choices(report, &diff);
  tell_pins(report, &diff);
done:
  wlmi_diff_release(&diff);
  for (int side = 0; side < 2; side++) wlmi_content_release(&contents[side]);
  return status;
}
