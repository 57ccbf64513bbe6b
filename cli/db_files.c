/* db check, merge and prune: commands that treat the database as a file. */
#include "cli/commands.h"
#include "cli/session.h"
#include "db/store.h"

static wlm_status only_check(const char *path, wlmi_text *faults, wlmi_store_counts *counts) {
  wlm_store *store;
  wlm_status status = wlmi_store_open(path, WLMI_STORE_READ, &store);
  if (status == WLM_OK) status = wlmi_store_check(store, faults);
  if (status == WLM_OK) status = wlmi_store_count(store, counts);
  wlmi_store_close(store);
  return status;
}

static wlm_status repair(const char *path, wlmi_text *faults, wlmi_report *report) {
  wlmi_text kept_as = {0};
  wlmi_store_repair_result result;
  wlm_status status = wlmi_store_repair(path, faults, &kept_as, &result);
  if (status == WLM_OK && kept_as.size) {
    /* Unreadable rows leave no trace, so `lost` is a lower bound. */
    wlmi_report_members(report, "kept=%jd lost_at_least=%jd kept_models=%jd damaged_file=%s", result.kept, result.lost,
                        result.models, kept_as.data);
  }
  wlmi_text_release(&kept_as);
  return status;
}

wlm_status wlmi_cmd_db_check(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0}, faults = {0};
  wlmi_store_counts counts = {0};
  wlm_status status;
  WLM_TRY(wlmi_cli_database_path(options, &path));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", path.data);
  status = options->repair ? repair(path.data, &faults, report) : only_check(path.data, &faults, &counts);
  if (!report->json)
    wlmi_report_strings(report, "fault", &faults);
  else if (faults.size)
    wlmi_report_string(report, "faults", faults.data);
  if (status == WLM_OK && options->repair)
    status = only_check(path.data, &faults, &counts); /* counts what is there
                                                       * after the repair */
  WLM_TRY(status);
  wlmi_report_members(report, "measurements=%jd check=%s", counts.measurements, "ok");
done:
  wlmi_text_release(&path);
  wlmi_text_release(&faults);
  return status;
}

wlm_status wlmi_cmd_db_merge(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text conflicts = {0};
  int64_t measurements = 0;
  wlm_status status;
  WLM_TRY(wlmi_store_merge_files((const char *const *)options->arguments + 1, options->argument_count - 1,
                                 options->output, &conflicts, &measurements));
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s measurements=%jd", options->output, measurements);
  wlmi_report_array(report, "conflicts");
  wlmi_report_strings(report, "conflict", &conflicts);
  wlmi_report_close(report);
done:
  wlmi_text_release(&conflicts);
  return status;
}

wlm_status wlmi_cmd_db_prune(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  int64_t removed = 0;
  wlm_status status;
  WLM_TRY(wlmi_cli_open_to_change(options, &path, &store));
  WLM_TRY(wlmi_store_prune(store, options->keep, &removed));
  WLM_TRY(wlmi_store_count(store, &counts));
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s removed=%jd measurements=%jd", path.data, removed, counts.measurements);
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
