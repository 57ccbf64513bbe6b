#include "support/bare_host.h"
#include "support/defaults.h"

wlm_context *bare_host;
wlm_matrix *bare_matrix;

int bare_host_begin(void **state) {
  (void)state;
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  return wlm_context_create(&options, &bare_host) != WLM_OK;
}

int bare_host_begin_with(const wlm_csr *csr) {
  return bare_host_begin(NULL) || wlm_matrix_create(bare_host, csr, NULL, &bare_matrix) != WLM_OK;
}

int bare_host_end(void **state) {
  (void)state;
  wlm_matrix_destroy(bare_matrix);
  bare_matrix = NULL;
  wlm_context_destroy(bare_host);
  return 0;
}
