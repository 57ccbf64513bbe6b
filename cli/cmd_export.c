/* export and import: what was learned, without any device. */
#include <string.h>

#include "cli/commands.h"
#include "cli/db_actions.h"
#include "cli/session.h"
#include "common/path.h"
#include "db/interchange.h"

wlm_status wlmi_cli_database_path(const wlmi_cli_options *options, wlmi_text *path) {
  if (!options->database) return wlmi_store_default_path(path);
  if (!*options->database)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--db '' means no database; name one, or leave the option out");
  wlmi_text_puts(path, options->database);
  return path->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of the database") : WLM_OK;
}

wlm_status wlmi_cli_open_store(const wlmi_cli_options *options, wlmi_store_mode mode, wlmi_text *path,
                               wlm_store **store) {
  *store = NULL;
  wlm_status status = wlmi_cli_database_path(options, path);
  return status == WLM_OK ? wlmi_store_open(path->data, mode, store) : status;
}

int wlmi_cmd_export(const wlmi_cli_options *options) {
  wlm_status status;
  wlmi_report report = {.json = options->json};
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_store_counts counts;
  WLM_TRY(wlmi_cli_open_store(options, WLM_STORE_READ, &path, &store));
  WLM_TRY(wlmi_store_count(store, &counts));
  if (!strcmp(options->output, "-")) {
    WLM_TRY(wlmi_store_export_file(store, stdout, "standard output"));
  } else {
    WLM_TRY(wlmi_store_export_path(store, options->output));
    wlmi_report_object(&report, NULL);
    wlmi_report_string(&report, "database", path.data);
    wlmi_report_string(&report, "file", options->output);
    wlmi_report_integer(&report, "measurements", counts.measurements);
    wlmi_report_close(&report);
  }
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return wlmi_cli_finish(&report, status);
}

int wlmi_cmd_import(const wlmi_cli_options *options) {
  wlm_status status;
  wlmi_report report = {.json = options->json};
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
  wlmi_report_object(&report, NULL);
  wlmi_report_string(&report, "database", path.data);
  wlmi_report_integer(&report, "added", added);
  wlmi_report_integer(&report, "measurements", counts.measurements);
  wlmi_report_close(&report);
done:
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return wlmi_cli_finish(&report, status);
}
