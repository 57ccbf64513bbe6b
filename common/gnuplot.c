#include "common/gnuplot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/process.h"

wlm_status wlm_gnuplot(const wlm_text *script) {
  char *const argv[] = {"gnuplot", NULL};
  wlm_status status = WLM_OK;
  if (script->failed) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a picture");
  FILE *file = tmpfile();
  if (!file || fwrite(script->data, 1, script->size, file) != script->size || fflush(file) || fseek(file, 0, SEEK_SET))
    WLM_TRY(wlm_fail(WLM_ERR_IO, "a temporary file: %s", strerror(errno)));
  const int code = wlm_process_run(argv, fileno(file), NULL);
  if (code < 0)
    status = wlm_fail(WLM_ERR_NOT_FOUND, "gnuplot is not installed; on Debian or Ubuntu: apt-get install gnuplot-nox");
  else if (code)
    status = wlm_fail(WLM_ERR_IO, "gnuplot could not draw (status %d); it says why above", code);
done:
  if (file) fclose(file);
  return status;
}

void wlm_gnuplot_quoted(wlm_text *script, const char *text, const char *ending) {
  wlm_text_puts(script, "'");
  for (; *text; text++) wlm_text_append(script, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
  wlm_text_printf(script, "%s'", ending);
}
