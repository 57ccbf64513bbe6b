/* Kernels that were compiled ahead, in archives (db/kernel_archive.h): one beside the library, and those that a context
 * is given. They are found by the hash of their source, the architecture and the compiler's flags. The compiler's
 * version is left out, so that they are also found where another compiler is installed, or none. Their purposes
 * (runtime/purpose.h) are keys without bytes, which say that there is a kernel before its source is emitted. */
#pragma once

#include "core/base/hash.h"
#include "core/base/text.h"
#include "db/kernel_archive.h"
#include "runtime/dispatch/device.h"

/* Machine code runs on the architectures of its major version from its own on, PTX on all from its own on. */
typedef enum wlmi_code { WLMI_CODE_MACHINE, WLMI_CODE_PTX } wlmi_code;

/* `what`: the hash of a source, or a purpose, which is a key by itself as well. An archive also has the key
 * wlmi_generator_version() of the templates that it was built from. */
wlmi_hash wlmi_archived_key(wlmi_hash what, wlmi_code code, int arch, const char *flags);

/* The archives of a context, in the order in which they are searched. Zero-initialise it. */
typedef struct wlmi_archives {
  wlmi_kernel_archive **list;
  int64_t count, capacity;
} wlmi_archives;

/* Opens an archive and adds it; errors are those of wlmi_kernel_archive_open. */
wlm_status wlmi_archives_add(wlmi_archives *archives, const char *path, int is_shipped);
/* Adds the archive `given`; NULL = $WARPLOOM_KERNELS, or the shipped one; "" = none. One that cannot be used is logged
 * and left out. WLM_ERR_OUT_OF_MEMORY alone. */
wlm_status wlmi_archives_add_given(wlmi_archives *archives, const char *given);
void wlmi_archives_close(wlmi_archives *archives);

/* Whether one of them has kernels for a purpose on a device. */
int wlmi_archives_serve(const wlmi_archives *archives, const wlmi_device_info *device, wlmi_hash purpose);
/* A copy of the kernels of a source for a device (wlmi_free); WLM_ERR_NOT_FOUND. */
wlm_status wlmi_archives_get_source(const wlmi_archives *archives, const wlmi_device_info *device, wlmi_hash source,
                                    void **image, size_t *size);
