#include "cli/gnuplot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/process.h"

static wlm_status missing(void) {
  return wlmi_fail(WLM_ERR_NOT_FOUND, "gnuplot is not installed; on Debian or Ubuntu: apt-get install gnuplot-nox");
}

wlm_status wlmi_gnuplot_find(void) {
  wlmi_text path = {0};
  wlmi_process_find("gnuplot", &path);
  const wlm_status status = path.size ? WLM_OK : missing();
  wlmi_text_release(&path);
  return status;
}

wlm_status wlmi_gnuplot_folder(wlmi_temporary *folder) {
  const wlm_status status = wlmi_temporary_open(folder);
  if (status != WLM_OK || !strchr(folder->folder, '\n')) return status;
  wlmi_temporary_close(folder);
  return wlmi_fail(WLM_ERR_IO, "the name of TMPDIR has a line end; set it to another folder");
}

wlm_status wlmi_gnuplot(const wlmi_text *script) {
  char *const argv[] = {"gnuplot", NULL};
  wlm_status status = WLM_OK;
  if (script->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a picture");
  FILE *file = tmpfile();
  if (!file || fwrite(script->data, 1, script->size, file) != script->size || fflush(file) || fseek(file, 0, SEEK_SET))
    WLM_TRY(wlmi_fail(WLM_ERR_IO, "a temporary file: %s", strerror(errno)));
  const int code = wlmi_process_run(&(wlmi_process){.argv = argv, .input = fileno(file)});
  if (code == WLM_PROCESS_MISSING)
    status = missing();
  else if (code)
    status = wlmi_fail(WLM_ERR_IO, "gnuplot could not draw (status %d); its message is above", code);
done:
  if (file) fclose(file);
  return status;
}

void wlmi_gnuplot_quoted(wlmi_text *script, const char *text, const char *ending) {
  wlmi_text_puts(script, "'");
  for (; *text; text++) wlmi_text_append(script, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
  wlmi_text_printf(script, "%s'", ending);
}
