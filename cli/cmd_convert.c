/* convert: writes a matrix, usually a synthetic one, to a Matrix Market file for other programs. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/memory_need.h"
#include "cli/progress.h"
#include "core/base/file.h"

/* Stops when the file cannot be written, and when the user ends the command. */
static wlm_status write_matrix(FILE *file, const wlmi_csr_host *csr) {
  fprintf(file, "%%%%MatrixMarket matrix coordinate %s general\n%lld %lld %lld\n", csr->values ? "real" : "pattern",
          (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  for (int64_t row = 0; row < csr->rows && !ferror(file); row++) {
    if (wlmi_interrupted()) return wlmi_fail(WLM_ERR_CANCELLED, "convert was interrupted");
    for (int64_t p = csr->rowptr[row]; p < csr->rowptr[row + 1]; p++) {
      fprintf(file, "%lld %d", (long long)row + 1, csr->colind[p] + 1);
      if (csr->values) fprintf(file, " %.9g", (double)csr->values[p]);
      putc('\n', file);
    }
  }
  return WLM_OK;
}

static wlm_status write_file(const char *path, const wlmi_csr_host *csr) {
  wlmi_output output;
  if (!strcmp(path, "-")) return write_matrix(stdout, csr); /* main checks for write errors */
  wlmi_catch_interrupts();
  WLM_CHECK(wlmi_output_open(path, &output));
  return wlmi_output_close(&output, write_matrix(output.file, csr));
}

wlm_status wlmi_cmd_convert(const wlmi_cli_options *options, wlmi_report *report) {
  wlm_status status;
  wlmi_csr_host csr = {0};
  const wlmi_memory_need need = {.options = options, .input = options->arguments[0]};
  WLM_TRY(wlmi_input_read_fitting(&need, &csr));
  WLM_TRY(write_file(options->output, &csr));
  if (!strcmp(options->output, "-")) goto done;
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "input=%s file=%s rows=%jd cols=%jd nnz=%jd", options->arguments[0], options->output,
                      csr.rows, csr.cols, csr.nnz);
  wlmi_report_close(report);
done:
  wlmi_csr_host_release(&csr);
  return status;
}
