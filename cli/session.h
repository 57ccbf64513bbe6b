/* A session: a context opened by the options, and a matrix on its device. */
#pragma once

#include "cli/options.h"
#include "cli/report.h"
#include "db/store.h"
#include "generator/generator.h"
#include "tuner/upload.h"

typedef struct wlmi_session {
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
  const wlm_matrix *matrix;
  wlm_problem problem;
  wlm_execute_args args; /* without memory */
  const wlmi_cli_options *options;
  int multiplies; /* the command multiplies with the options' widths, so memory for that is checked */
} wlmi_session;

wlm_status wlmi_session_open(const wlmi_cli_options *options, wlmi_session *session);
/* Reads an INPUT and copies it to the device; replaces the previous one. */
wlm_status wlmi_session_load(wlmi_session *session, const char *input);
/* Whether it could read an INPUT (wlmi_input_check). */
wlm_status wlmi_session_check(const wlmi_session *session, const char *input);
/* For each INPUT of the command line that can be read: loads it, calls `each` to report on it, and prints the report;
 * with JSON one line per INPUT. */
typedef wlm_status wlmi_session_input_fn(wlmi_session *session, const char *input, const wlmi_cli_options *options,
                                         wlmi_report *report);
wlm_status wlmi_session_each(wlmi_session *session, const wlmi_cli_options *options, wlmi_report *report,
                             wlmi_session_input_fn *each);
void wlmi_session_close(wlmi_session *session); /* also of a zeroed one */

/* The matrix name in measurements and tables: the file name without folder and endings, or the INPUT as it is. */
void wlmi_input_label(const char *input, char *label, size_t size);

/* The user database that the options name, or the default one: its path, or the open store. */
wlm_status wlmi_cli_database_path(const wlmi_cli_options *options, wlmi_text *path);
wlm_status wlmi_cli_open_store(const wlmi_cli_options *options, wlmi_store_mode mode, wlmi_text *path,
                               wlm_store **store);
/* The same for a command that changes what a database has: WLM_ERR_NOT_FOUND if there is none. */
wlm_status wlmi_cli_open_to_change(const wlmi_cli_options *options, wlmi_text *path, wlm_store **store);
/* An error if both --system and --db were given. */
wlm_status wlmi_cli_check_system(const wlmi_cli_options *options);
/* Opens a database for reading: the shipped one with --system, or if the options name none and nothing was tuned yet.
 */
wlm_status wlmi_cli_open_to_show(const wlmi_cli_options *options, wlmi_text *path, wlm_store **store);

/* A generator without a device, from $WARPLOOM_TEMPLATES where that is set. */
wlm_status wlmi_cli_generator(wlmi_generator **generator);

/* Ends a command: closes and prints the report, prints the error if the command failed, and returns the exit code. */
int wlmi_cli_finish(wlmi_report *report, wlm_status status);

void wlmi_report_device(wlmi_report *report, const wlm_context *context);
void wlmi_report_stats(wlmi_report *report, const wlm_stats *stats); /* members of the object that is open */
