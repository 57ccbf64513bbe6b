/* Makes a report as one self-contained HTML page. */
#ifndef WLM_CLI_PAGE_H
#define WLM_CLI_PAGE_H

#include "cli/overview.h"

typedef struct wlmi_page {
  const char *database;
  int64_t database_bytes;
  const wlmi_class *classes; /* all of the database */
  int64_t class_count;
  const wlmi_overview *overview; /* of the class that is shown; NULL = no measurements */
  int64_t pin_count;             /* of that class */
  int64_t trained_at;            /* its newest model; 0 = none */
  const char *const *results;    /* results files of bench core or of compare --json, for the verdict */
  int result_count;
} wlmi_page;

/* WLM_ERR_NOT_FOUND without gnuplot, which draws the pictures. */
wlm_status wlmi_page_make(const wlmi_page *page, wlmi_text *html);

#endif
