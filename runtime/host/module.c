#include "runtime/host/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "exported/tables.h"

/* One of the two. */
struct wlmi_module {
  void *library;
  const wlmi_exported_function *functions; /* ended by one without a name */
};

void wlmi_host_module_close(wlmi_module *module) {
  if (!module) return;
  if (module->library) dlclose(module->library);
  wlmi_free(module);
}

void *wlmi_host_module_symbol(const wlmi_module *module, const char *name) {
  const wlmi_exported_function *f = module->functions;
  void *symbol = NULL;
  if (!f) return dlsym(module->library, name);
  while (f->name && strcmp(f->name, name)) f++;
  if (f->name) memcpy(&symbol, &f->function, sizeof symbol);
  return symbol;
}

/* Whether a shared object has all the bytes that it is mapped from; touching a page behind its end is SIGBUS. */
static int is_whole(const char *image, size_t size) {
  ElfW(Ehdr) header;
  ElfW(Phdr) segment;
  if (size < sizeof header) return 0;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phoff > size ||
      (size - header.e_phoff) / sizeof segment < header.e_phnum)
    return 0;
  for (int i = 0; i < header.e_phnum; i++) {
    memcpy(&segment, image + header.e_phoff + (size_t)i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD && (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)) return 0;
  }
  return 1;
}

/* dlopen takes two files of one name for the same library, and the number of a closed descriptor is used again. So each
 * path gets a number of its own, in binary: "//" is 0 and "/." is 1. */
static void name_file(int file, char path[96]) {
  static atomic_uint count;
  size_t length = strlen(strcpy(path, "/proc/self/fd"));
  for (unsigned number = atomic_fetch_add(&count, 1); number; number /= 2) {
    path[length++] = '/';
    path[length++] = number % 2 ? '.' : '/';
  }
  snprintf(path + length, 96 - length, "/%d", file);
}

static wlm_status write_whole(int file, const char *image, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t wrote = write(file, image + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wlmi_fail(WLM_ERR_IO, "a kernel of %zu bytes cannot be loaded: %s", size, strerror(errno));
    done += (size_t)wrote;
  }
  return WLM_OK;
}

/* dlopen needs a file name; a memory file has one and disappears by itself. */
static wlm_status load(const void *image, size_t size, wlmi_module *module) {
  char path[96];
  if (!is_whole(image, size)) return wlmi_fail(WLM_ERR_IO, "a compiled kernel does not load: it is cut off");
  const int file = memfd_create("warploom-kernel", MFD_CLOEXEC);
  if (file < 0) return wlmi_fail(WLM_ERR_IO, "memfd_create: %s", strerror(errno));
  wlm_status status = write_whole(file, image, size);
  if (status == WLM_OK) {
    name_file(file, path);
    module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  close(file);
  if (status != WLM_OK || module->library) return status;
  const char *reason = dlerror();
  /* An undefined function is an error of the source. */
  return wlmi_fail(reason && strstr(reason, "undefined symbol") ? WLM_ERR_COMPILE : WLM_ERR_IO,
                   "a compiled kernel does not load: %s", reason ? reason : "no reason given");
}

wlm_status wlmi_host_module_open(const void *image, size_t size, wlmi_module **module) {
  *module = wlmi_alloc_zero(1, sizeof **module);
  if (!*module) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "module");
  if (!size) (*module)->functions = image;
  wlm_status status = size ? load(image, size, *module) : WLM_OK;
  if (status == WLM_OK) return WLM_OK;
  wlmi_host_module_close(*module);
  *module = NULL;
  return status;
}
