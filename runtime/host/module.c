#include "runtime/host/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/memory.h"

struct wlmi_module {
  void *library;
  int file; /* stays open, because the descriptor is part of the file name, and dlopen takes two files of one name for
             * the same library */
};

void wlmi_host_module_close(wlmi_module *module) {
  if (!module) return;
  if (module->library) dlclose(module->library);
  if (module->file >= 0) close(module->file);
  wlmi_free(module);
}

void *wlmi_host_module_symbol(const wlmi_module *module, const char *name) { return dlsym(module->library, name); }

/* dlopen needs a file name; a memory file has one and disappears by itself. */
static wlm_status load(const void *image, size_t size, wlmi_module *module) {
  char path[64];
  module->file = memfd_create("warploom-kernel", MFD_CLOEXEC);
  if (module->file < 0) return wlmi_fail(WLM_ERR_IO, "memfd_create: %s", strerror(errno));
  for (size_t done = 0; done < size;) {
    ssize_t wrote = write(module->file, (const char *)image + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wlmi_fail(WLM_ERR_IO, "a kernel of %zu bytes cannot be loaded: %s", size, strerror(errno));
    done += (size_t)wrote;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module->library) return WLM_OK;
  const char *reason = dlerror();
  /* An undefined function is an error of the source. */
  return wlmi_fail(reason && strstr(reason, "undefined symbol") ? WLM_ERR_COMPILE : WLM_ERR_IO,
                   "a compiled kernel does not load: %s", reason ? reason : "no reason given");
}

wlm_status wlmi_host_module_open(const void *image, size_t size, wlmi_module **module) {
  *module = wlmi_alloc_zero(1, sizeof **module);
  if (!*module) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "module");
  wlm_status status = load(image, size, *module);
  if (status == WLM_OK) return WLM_OK;
  wlmi_host_module_close(*module);
  *module = NULL;
  return status;
}
