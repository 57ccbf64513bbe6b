/* What the page's own script chooses from: the candidates of every case, as JSON. */
#ifndef WLM_CLI_PAGE_JSON_H
#define WLM_CLI_PAGE_JSON_H

#include "cli/survey.h"

/* {"problems":[KEY...],"variants":[NAME...],"cases":[{"problem":0,"id":FINGERPRINT,"matrix":NAME,"n":32,"rows":...,
 * "nnz":...,"cv":...,"bucket":...,"failed":0,"more":0,"ways":[[WAY,VARIANT]...],"candidates":[[VARIANT,us,spread,prepare,count,precise]...]}]}
 * Safe inside a script element: no "<" is in it. */
wlm_status wlmi_page_json(const wlmi_survey *survey, wlmi_text *out);

#endif
