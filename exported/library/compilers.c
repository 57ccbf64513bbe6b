/* The compilers of an exported library: there are none. GPUs get the contained architectures. */
#include "exported/tables.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/host/compiler.h"

static wlm_status no_compiler(void) {
  return wlmi_fail(WLM_ERR_NO_COMPILER, "an exported library compiles no kernels; export what is missing");
}

wlm_status wlmi_host_compiler_describe(char *text, size_t capacity) {
  if (capacity) *text = 0;
  return WLM_OK;
}

wlm_status wlmi_host_compiler_identify(char hex[WLMI_HASH_HEX]) {
  *hex = 0;
  return WLM_OK;
}

wlm_status wlmi_host_compile(const char *source, void **image, size_t *size) {
  (void)source;
  *image = NULL;
  *size = 0;
  return no_compiler();
}

wlm_status wlmi_nvrtc_version(int *major, int *minor) {
  *major = *minor = 0;
  return no_compiler();
}

wlm_status wlmi_nvrtc_identify(char hex[WLMI_HASH_HEX]) {
  *hex = 0;
  return WLM_OK;
}

const char *wlmi_nvrtc_flags(void) { return ""; }

int wlmi_nvrtc_arch(int arch) { return wlmi_exported_arch(&wlmi_exported_tables, arch); }

wlm_status wlmi_nvrtc_compile(const char *source, const char *name, int arch, int is_ptx, void **image, size_t *size,
                              wlmi_text *log) {
  (void)source, (void)name, (void)arch, (void)is_ptx, (void)log;
  *image = NULL;
  *size = 0;
  return no_compiler();
}
