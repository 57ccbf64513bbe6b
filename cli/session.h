/* What most commands begin with: a context as the options say, and a matrix on its device. */
#ifndef WLM_CLI_SESSION_H
#define WLM_CLI_SESSION_H

#include "cli/options.h"
#include "cli/report.h"
#include "tuner/upload.h"

typedef struct wlm_session {
  wlm_context *context;
  wlm_csr_host csr;
  wlm_upload upload;
  const wlm_matrix *matrix;
  wlm_problem problem;
  wlm_index rowptr_type, colind_type; /* as the options have them */
  void *bias;                         /* of the problem, on the device; NULL where there is none */
} wlm_session;

wlm_status wlm_session_open(const wlm_cli_options *options, wlm_session *session);
/* Reads an INPUT and brings it to the device, in place of the one before. */
wlm_status wlm_session_load(wlm_session *session, const char *input);
void wlm_session_close(wlm_session *session); /* also of a zeroed one */

/* The name that measurements and tables carry: the file's without folder and endings, or the INPUT as it is. */
void wlm_input_label(const char *input, char *label, size_t size);

/* Prints why the last library call failed; gives the exit code. */
int wlm_cli_failed(wlm_status status);
/* Finishes a command: flushes what there is to tell, prints a failure, gives the exit code. */
int wlm_cli_finish(wlm_report *report, wlm_status status);

void wlm_report_device(wlm_report *report, const wlm_context *context);
void wlm_report_stats(wlm_report *report, const wlm_stats *stats); /* members of the object that is open */

#endif
