/* A context of the host device without databases and kernel cache. */
#pragma once

#include "warploom/warploom.h"

extern wlm_context *bare_host;

/* cmocka's group setup and teardown. */
int bare_host_begin(void **state);
int bare_host_end(void **state);
