#include "support/bare_host.h"
#include "support/defaults.h"

wlm_context *bare_host;

int bare_host_begin(void **state) {
  (void)state;
  wlm_context_options options = BARE_OPTIONS(.device = "host");
  return wlm_context_create(&options, &bare_host) != WLM_OK;
}

int bare_host_end(void **state) {
  (void)state;
  wlm_context_destroy(bare_host);
  return 0;
}
