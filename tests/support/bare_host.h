/* A context of the host device without databases and kernel cache. */
#pragma once

#include "warploom/warploom.h"

extern wlm_context *bare_host;
extern wlm_matrix *bare_matrix;

/* cmocka's group setup and teardown; the latter also destroys bare_matrix. */
int bare_host_begin(void **state);
int bare_host_end(void **state);
/* For a setup with a matrix: also makes bare_matrix of these arrays. */
int bare_host_begin_with(const wlm_csr *csr);
