#include "cli/left_out.h"

#include "cli/progress.h"

wlm_status wlmi_left_out_add(wlmi_left_out *left_out, const wlmi_cli_options *options, const char *input,
                             wlm_status status, wlmi_report *report) {
  if (options->argument_count < 2) return status;
  wlmi_print_message("warploom: %s", wlm_error_detail());
  wlmi_text_printf(&left_out->names, "%s%s", left_out->count++ ? ", " : "", input);
  if (report->json) {
    wlmi_report_object(report, NULL);
    wlmi_report_members(report, "input=%s error=%s", input, wlm_error_detail());
    wlmi_report_close(report);
  }
  return WLM_OK;
}

wlm_status wlmi_left_out_end(wlmi_left_out *left_out, const wlmi_cli_options *options, wlm_status status,
                             wlmi_report *report) {
  if (status == WLM_OK && left_out->count) {
    report->exit_code = WLMI_EXIT_FAILED;
    status = wlmi_fail(WLM_ERR_IO, "%d of %d inputs cannot be read and were left out: %s", left_out->count,
                       options->argument_count, left_out->names.failed ? "" : left_out->names.data);
  }
  wlmi_text_release(&left_out->names);
  return status;
}
