/* The actions of `warploom db`, one a function; cli/command_table.c lists them. Each tells what it did in the report's
 * open object. */
#ifndef WLM_CLI_DB_ACTIONS_H
#define WLM_CLI_DB_ACTIONS_H

#include "cli/options.h"
#include "cli/report.h"
#include "db/store.h"
#include "select/case.h"

enum { WLM_DB_ARGUMENTS = 32 };

typedef wlm_status wlmi_db_action(const wlmi_cli_options *options, wlmi_report *report);

wlmi_db_action wlmi_db_list; /* cli/db_list.c */
wlmi_db_action wlmi_db_diff;
wlmi_db_action wlmi_db_check; /* cli/db_files.c */
wlmi_db_action wlmi_db_merge;
wlmi_db_action wlmi_db_prune;
wlmi_db_action wlmi_db_pin; /* cli/db_pin.c */
wlmi_db_action wlmi_db_unpin;

/* The user database as the options say. `path` receives its name and *store the open store. */
wlm_status wlmi_cli_database_path(const wlmi_cli_options *options, wlmi_text *path);
wlm_status wlmi_cli_open_store(const wlmi_cli_options *options, wlmi_store_mode mode, wlmi_text *path,
                               wlm_store **store);

#endif
