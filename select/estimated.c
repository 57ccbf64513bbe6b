#include "select/state.h"

wlm_stats wlmi_moderate_stats(const wlm_stats *estimated) { return *estimated; }
int wlmi_select_estimated(wlmi_selection *s, wlmi_decision *decision) { return wlmi_select_by_model(s, decision); }
