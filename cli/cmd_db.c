/* export, import and db: what was learned, without any device. */
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
  if (!options->output) {
    fputs("warploom export: say where to with -o FILE; - is standard output\n", stderr);
    return WLM_EXIT_USAGE;
  }
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

/* ---- db ----------------------------------------------------------------------------------------- */

int wlm_cmd_db(const wlm_cli_options *options) {
  static const struct {
    const char *name, *usage;
    int least, most; /* arguments behind the name */
    wlm_db_action *run;
  } actions[] = {{"list", "list", 0, 0, wlm_db_list},
                 {"check", "check [--repair]", 0, 0, wlm_db_check},
                 {"merge", "merge A B [...] -o C", 2, WLM_DB_ARGUMENTS, wlm_db_merge},
                 {"diff", "diff A B", 2, 2, wlm_db_diff},
                 {"prune", "prune [--keep COUNT]", 0, 0, wlm_db_prune},
                 {"pin", "pin INPUT-or-BUCKET VARIANT", 2, 2, wlm_db_pin},
                 {"unpin", "unpin INPUT-or-BUCKET", 1, 1, wlm_db_unpin}};
  wlm_report report = {.json = options->json};
  size_t action = 0, count = sizeof actions / sizeof *actions;
  const int given = options->argument_count - 1;
  while (action < count && strcmp(actions[action].name, options->arguments[0])) action++;
  if (action == count) {
    fprintf(stderr, "warploom db: unknown action '%s'; say list, check, merge, diff, prune, pin or unpin\n",
            options->arguments[0]);
    return WLM_EXIT_USAGE;
  }
  if (given < actions[action].least || given > actions[action].most) {
    fprintf(stderr, "warploom db %s: %s; usage: warploom db %s\n", actions[action].name,
            given < actions[action].least ? "an argument is missing" : "too many arguments", actions[action].usage);
    return WLM_EXIT_USAGE;
  }
  wlm_report_object(&report, NULL);
  wlm_status status = actions[action].run(options, &report);
  wlm_report_close(&report);
  return wlm_cli_finish(&report, status);
}
