/* Pictures, drawn by gnuplot. */
#ifndef WLM_COMMON_GNUPLOT_H
#define WLM_COMMON_GNUPLOT_H

#include "common/text.h"

/* WLM_ERR_NOT_FOUND, with how to get it, where there is no gnuplot: to ask before long work. */
wlm_status wlmi_gnuplot_find(void);
/* Runs gnuplot on a script that holds its data too. WLM_ERR_NOT_FOUND where there is no gnuplot. */
wlm_status wlmi_gnuplot(const wlmi_text *script);
/* Text and ending as one string in single quotes, in which nothing but the quote itself has a meaning to gnuplot; a
 * line end cannot be in there. */
void wlmi_gnuplot_quoted(wlmi_text *script, const char *text, const char *ending);

#endif
