/* db check, merge and prune: the database as a file. */
#include <string.h>

#include "cli/db_actions.h"
#include "db/content.h"

static wlm_status only_check(const char *path, wlm_text *faults, wlm_store_counts *counts) {
  wlm_store *store;
  wlm_status status = wlm_store_open(path, WLM_STORE_READ, &store);
  if (status == WLM_OK) status = wlm_store_check(store, faults);
  if (status == WLM_OK) status = wlm_store_count(store, counts);
  wlm_store_close(store);
  return status;
}

static wlm_status repair(const char *path, wlm_text *faults, wlm_report *report) {
  wlm_text kept_as = {0};
  wlm_store_repair_result result;
  wlm_status status = wlm_store_repair(path, faults, &kept_as, &result);
  if (status == WLM_OK && kept_as.size) {
    wlm_report_integer(report, "kept", result.kept);
    wlm_report_integer(report, "lost_at_least", result.lost); /* what cannot be reached leaves no trace */
    wlm_report_integer(report, "kept_models", result.models);
    wlm_report_string(report, "damaged_file", kept_as.data);
  }
  wlm_text_release(&kept_as);
  return status;
}

wlm_status wlm_db_check(const wlm_cli_options *options, wlm_report *report) {
  wlm_text path = {0}, faults = {0};
  wlm_store_counts counts = {0};
  wlm_status status;
  WLM_TRY(wlm_cli_database_path(options, &path));
  wlm_report_string(report, "database", path.data);
  status = options->repair ? repair(path.data, &faults, report) : only_check(path.data, &faults, &counts);
  if (faults.size) wlm_report_string(report, "faults", faults.data);
  if (status == WLM_OK && options->repair) status = only_check(path.data, &faults, &counts); /* what there is now */
  WLM_TRY(status);
  wlm_report_integer(report, "measurements", counts.measurements);
  wlm_report_string(report, "check", "ok");
done:
  wlm_text_release(&path);
  wlm_text_release(&faults);
  return status;
}

wlm_status wlm_db_merge(const wlm_cli_options *options, wlm_report *report) {
  wlm_text conflicts = {0};
  int64_t measurements = 0;
  char *rest = NULL;
  wlm_status status;
  WLM_TRY(wlm_store_merge_files((const char *const *)options->arguments + 1, options->argument_count - 1,
                                options->output, &conflicts, &measurements));
  wlm_report_string(report, "database", options->output);
  wlm_report_integer(report, "measurements", measurements);
  wlm_report_array(report, "conflicts");
  for (char *line = conflicts.size ? strtok_r(conflicts.data, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest))
    wlm_report_string(report, report->json ? NULL : "conflict", line);
  wlm_report_close(report);
done:
  wlm_text_release(&conflicts);
  return status;
}

wlm_status wlm_db_prune(const wlm_cli_options *options, wlm_report *report) {
  wlm_text path = {0};
  wlm_store *store = NULL;
  wlm_store_counts counts;
  int64_t removed = 0;
  wlm_status status;
  WLM_TRY(wlm_cli_open_store(options, WLM_STORE_WRITE, &path, &store));
  WLM_TRY(wlm_store_prune(store, options->keep, &removed));
  WLM_TRY(wlm_store_count(store, &counts));
  wlm_report_string(report, "database", path.data);
  wlm_report_integer(report, "removed", removed);
  wlm_report_integer(report, "measurements", counts.measurements);
done:
  wlm_store_close(store);
  wlm_text_release(&path);
  return status;
}
