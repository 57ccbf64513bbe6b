/* What most commands begin with: a context as the options say, and a matrix on its device. */
#ifndef WLM_CLI_SESSION_H
#define WLM_CLI_SESSION_H

#include "cli/options.h"
#include "cli/report.h"
#include "db/store.h"
#include "tuner/upload.h"

typedef struct wlmi_session {
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
  const wlm_matrix *matrix;
  wlm_problem problem;
  wlm_execute_args args;              /* without memory */
  wlm_index rowptr_type, colind_type; /* as the options have them */
  const wlmi_cli_options *options;
  int multiplies; /* with the widths of the options, so that there must be memory for it */
} wlmi_session;

wlm_status wlmi_session_open(const wlmi_cli_options *options, wlmi_session *session);
/* Reads an INPUT and brings it to the device, in place of the one before. */
wlm_status wlmi_session_load(wlmi_session *session, const char *input);
void wlmi_session_close(wlmi_session *session); /* also of a zeroed one */

/* The spec of a problem for matrices of these types. */
wlm_status wlmi_cli_spec(const wlm_problem *problem, wlm_index rowptr_type, wlm_index colind_type, wlm_type value_type,
                         int has_values, wlmi_spec *spec);

/* The name that measurements and tables carry: the file's without folder and endings, or the INPUT as it is. */
void wlmi_input_label(const char *input, char *label, size_t size);

/* The user database that the options name, or the default one. `path` receives its name and *store the open store. */
wlm_status wlmi_cli_database_path(const wlmi_cli_options *options, wlmi_text *path);
wlm_status wlmi_cli_open_store(const wlmi_cli_options *options, wlmi_store_mode mode, wlmi_text *path,
                               wlm_store **store);

/* Ends a command: closes and prints the report, prints why the command failed, gives the exit code. */
int wlmi_cli_finish(wlmi_report *report, wlm_status status);

void wlmi_report_device(wlmi_report *report, const wlm_context *context);
void wlmi_report_stats(wlmi_report *report, const wlm_stats *stats); /* members of the object that is open */

#endif
