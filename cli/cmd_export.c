/* export and import: write and read measurements and pins as JSON lines, without a device. */
#include <string.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "core/base/path.h"
#include "db/interchange.h"

wlm_status wlmi_cmd_export(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  status = options->system ? wlmi_cli_open_to_show(options, &path, &store)
                           : wlmi_cli_open_store(options, WLM_STORE_READ, &path, &store);
  if (status == WLM_ERR_NOT_FOUND && !options->database && !options->system)
    status = wlmi_fail(status, "%s: no such file; tune first, or export the shipped database with --system",
                       path.size ? path.data : "the user database");
  WLM_TRY(status);
  WLM_TRY(wlmi_store_count(store, &counts));
  if (!strcmp(options->output, "-")) {
    WLM_TRY(wlmi_store_export_file(store, stdout, "standard output"));
  } else {
    WLM_TRY(wlmi_store_export_path(store, options->output));
    wlmi_report_object(report, NULL);
    wlmi_report_string(report, "database", path.data);
    wlmi_report_string(report, "file", options->output);
    wlmi_report_integer(report, "measurements", counts.measurements);
    wlmi_report_close(report);
  }
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}

wlm_status wlmi_cmd_import(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  int64_t added = 0;
  const char *from = options->arguments[0];
  WLM_TRY(wlmi_cli_open_store(options, WLM_STORE_WRITE, &path, &store));
  if (!strcmp(from, "-"))
    WLM_TRY(wlmi_store_import_file(store, stdin, "standard input", &added));
  else
    WLM_TRY(wlmi_store_import_path(store, from, &added));
  WLM_TRY(wlmi_store_count(store, &counts));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", path.data);
  wlmi_report_integer(report, "added", added);
  wlmi_report_integer(report, "measurements", counts.measurements);
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
