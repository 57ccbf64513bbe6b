/* What a page says of the database, the device and the clocks of its measurements, as HTML. */
#ifndef WLM_CLI_PAGE_FACTS_H
#define WLM_CLI_PAGE_FACTS_H

#include "cli/page.h"

wlm_status wlmi_page_put_facts(const wlmi_page *page, wlmi_text *out); /* members of a list */
wlm_status wlmi_page_put_clocks(const wlmi_class *of, wlmi_text *out); /* rows of a table */
void wlmi_page_put_escaped(wlmi_text *out, const char *text);          /* NULL is nothing */

enum { WLM_PAGE_DATE = 32 };
const char *wlmi_page_date(int64_t seconds, char text[WLM_PAGE_DATE]); /* since 1970 */

#endif
