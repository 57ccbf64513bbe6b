/* export and import: what was learned, without any device. */
#include <string.h>

#include "cli/commands.h"
#include "cli/db_actions.h"
#include "cli/session.h"
#include "db/interchange.h"

wlm_status wlm_cli_database_path(const wlm_cli_options *options, wlm_text *path) {
  if (!options->database) return wlm_store_default_path(path);
  if (!*options->database)
    return wlm_fail(WLM_ERR_INVALID_ARGUMENT, "--db '' means no database; name one, or leave the option out");
  wlm_text_puts(path, options->database);
  return path->failed ? wlm_fail(WLM_ERR_OUT_OF_MEMORY, "path of the database") : WLM_OK;
}

wlm_status wlm_cli_open_store(const wlm_cli_options *options, wlm_store_mode mode, wlm_text *path, wlm_store **store) {
  *store = NULL;
  wlm_status status = wlm_cli_database_path(options, path);
  return status == WLM_OK ? wlm_store_open(path->data, mode, store) : status;
}

int wlm_cmd_export(const wlm_cli_options *options) {
  wlm_status status;
  wlm_report report = {.json = options->json};
  wlm_text path = {0};
  wlm_store *store = NULL;
  wlm_store_counts counts;
  WLM_TRY(wlm_cli_open_store(options, WLM_STORE_READ, &path, &store));
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
  WLM_TRY(wlm_cli_open_store(options, WLM_STORE_WRITE, &path, &store));
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
