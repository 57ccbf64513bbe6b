/* Runs gnuplot to draw plots. */
#ifndef WLM_CLI_GNUPLOT_H
#define WLM_CLI_GNUPLOT_H

#include "core/base/temporary.h"
#include "core/base/text.h"

/* Says with WLM_ERR_NOT_FOUND, and how to get it, that there is no gnuplot; to ask before long work. */
wlm_status wlmi_gnuplot_find(void);
/* Opens a temporary folder for pictures. WLM_ERR_IO also if its name has a line end, which gnuplot cannot handle. */
wlm_status wlmi_gnuplot_folder(wlmi_temporary *folder);
/* Runs gnuplot on a script that also holds its data. WLM_ERR_NOT_FOUND where there is no gnuplot. */
wlm_status wlmi_gnuplot(const wlmi_text *script);
/* Appends text and ending as one single-quoted string, in which only the quote is special to gnuplot. Line ends are not
 * possible. */
void wlmi_gnuplot_quoted(wlmi_text *script, const char *text, const char *ending);

#endif
