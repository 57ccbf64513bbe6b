/* Parts of a page: facts about the database, the device, and the compilers and drivers of measurements (page_facts.c);
 * and the candidates of every case as JSON for the page's script (page_json.c). */
#ifndef WLM_CLI_PAGE_PARTS_H
#define WLM_CLI_PAGE_PARTS_H

#include "cli/page.h"

wlm_status wlmi_page_put_facts(const wlmi_page *page, wlmi_text *out); /* members of a list */
/* The verdict: what tuning gained over the rules and over the baselines, and where it lost, as members of a list
 * (page_verdict.c). */
wlm_status wlmi_page_put_verdict(const wlmi_page *page, wlmi_text *out);
wlm_status wlmi_page_put_clocks(const wlmi_class *of, wlmi_text *out); /* rows of a table */
void wlmi_page_put_escaped(wlmi_text *out, const char *text);          /* NULL writes nothing */

enum { WLM_PAGE_DATE = 32 };
const char *wlmi_page_date(int64_t seconds, char text[WLM_PAGE_DATE]); /* since 1970 */

/* {"problems":[KEY...],"variants":[NAME...],"cases":[{"problem":0,"id":FINGERPRINT,"matrix":NAME,"n":32,"rows":...,
 * "nnz":...,"cv":...,"bucket":...,"winner":VARIANT,"us":...,"failed":0,"more":0,"ways":[[WAY,VARIANT]...],"candidates":[[VARIANT,us,spread,prepare,count,precise]...]}]}
 * Safe inside a script element: no "<" is in it. */
wlm_status wlmi_page_json(const wlmi_overview *overview, wlmi_text *out);

#endif
