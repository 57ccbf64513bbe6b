/* The actions of `warploom db`, one a function; cli/command_table.c lists them. Each tells what it did in the report's
 * open object. */
#ifndef WLM_CLI_DB_ACTIONS_H
#define WLM_CLI_DB_ACTIONS_H

#include "cli/options.h"
#include "cli/report.h"
#include "db/choice.h"
#include "db/store.h"

enum { WLM_DB_ARGUMENTS = 32 };

typedef wlm_status wlm_db_action(const wlm_cli_options *options, wlm_report *report);

wlm_db_action wlm_db_list; /* cli/db_list.c */
wlm_db_action wlm_db_diff;
wlm_db_action wlm_db_check; /* cli/db_files.c */
wlm_db_action wlm_db_merge;
wlm_db_action wlm_db_prune;
wlm_db_action wlm_db_pin; /* cli/db_pin.c */
wlm_db_action wlm_db_unpin;

/* The user database as the options say. `path` receives its name and *store the open store. */
wlm_status wlm_cli_database_path(const wlm_cli_options *options, wlm_text *path);
wlm_status wlm_cli_open_store(const wlm_cli_options *options, wlm_store_mode mode, wlm_text *path, wlm_store **store);

#endif
