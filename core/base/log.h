#pragma once

#include "warploom/warploom.h"

void wlmi_log(wlm_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
