/* What a page says of the database, the device and the clocks of its measurements, as HTML. */
#ifndef WLM_CLI_PAGE_FACTS_H
#define WLM_CLI_PAGE_FACTS_H

#include "cli/page.h"

wlm_status wlm_page_put_facts(const wlm_page *page, wlm_text *out); /* members of a list */
wlm_status wlm_page_put_clocks(const wlm_class *of, wlm_text *out); /* rows of a table */
void wlm_page_put_escaped(wlm_text *out, const char *text);         /* NULL is nothing */

enum { WLM_PAGE_DATE = 32 };
const char *wlm_page_date(int64_t seconds, char text[WLM_PAGE_DATE]); /* since 1970 */

#endif
