#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

static void *open_in(const char *folder, const char *const *names) {
  void *library = NULL;
  for (; folder && folder[0] && *names && !library; names++) {
    wlmi_text path = {0};
    wlmi_text_printf(&path, "%s/lib64/%s", folder, *names);
    if (!path.failed) library = dlopen(path.data, RTLD_NOW | RTLD_LOCAL);
    wlmi_text_release(&path);
  }
  return library;
}

wlm_status wlmi_cuda_library_open(const char *what, const char *variable, const char *const *names, void **library) {
  const char *file = secure_getenv(variable);
  if (file && file[0]) {
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return *library ? WLM_OK : wlmi_fail(WLM_ERR_NOT_FOUND, "%s: %s names it, but %s", what, variable, dlerror());
  }
  *library = NULL;
  for (const char *const *name = names; *name && !*library; name++) *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
  const char *const folders[] = {secure_getenv("CUDA_PATH"), secure_getenv("CUDA_HOME"), "/usr/local/cuda"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders && !*library; i++) *library = open_in(folders[i], names);
  if (*library) return WLM_OK;
  wlmi_text tried = {0};
  for (const char *const *name = names; *name; name++) wlmi_text_printf(&tried, "%s%s", tried.size ? ", " : "", *name);
  wlmi_fail(WLM_ERR_NOT_FOUND,
            "%s: found none of %s on the library path, in $CUDA_PATH/lib64, $CUDA_HOME/lib64 or /usr/local/cuda/lib64; "
            "install it or let %s name the file",
            what, tried.failed ? "its names" : tried.data, variable);
  wlmi_text_release(&tried);
  return WLM_ERR_NOT_FOUND;
}

wlm_status wlmi_cuda_library_symbol(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  if (!address) return wlmi_fail(WLM_ERR_NOT_FOUND, "the library lacks %s", name);
  memcpy(function, &address, sizeof address);
  return WLM_OK;
}
