/* Kernels that were compiled ahead, in an archive beside the library (db/kernel_archive.h). They are found by the hash
 * of their source, the architecture and the compiler's flags. The compiler's version is left out, so that they are also
 * found where another compiler is installed, or none. */
#ifndef WLM_RUNTIME_ARCHIVED_H
#define WLM_RUNTIME_ARCHIVED_H

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/problem/variant.h"
#include "db/kernel_archive.h"
#include "runtime/dispatch/device.h"

/* Machine code runs on the architectures of its major version from its own on, PTX on all from its own on. */
typedef enum wlmi_code { WLM_CODE_MACHINE, WLM_CODE_PTX } wlmi_code;

wlmi_hash wlmi_archived_key(const char source_hash[WLM_HASH_HEX], wlmi_code code, int arch, const char *flags);
/* The key under which an archive notes that it has kernels of a variant; it has no bytes. */
wlmi_hash wlmi_archived_variant_key(const char *variant);

/* Opens the archive `given`; NULL = $WARPLOOM_KERNELS, or the shipped one; "" = none. *archive is NULL where there is
 * none, and where it cannot be used, which is logged. WLM_ERR_OUT_OF_MEMORY alone. */
wlm_status wlmi_archive_open(const char *given, wlmi_kernel_archive **archive);

/* Whether the archive has the kernels of a source for a device, and a copy of them (wlmi_free); WLM_ERR_NOT_FOUND. */
int wlmi_archive_has_source(const wlmi_kernel_archive *archive, const wlmi_device_info *device,
                            const char source_hash[WLM_HASH_HEX]);
wlm_status wlmi_archive_get_source(const wlmi_kernel_archive *archive, const wlmi_device_info *device,
                                   const char source_hash[WLM_HASH_HEX], void **image, size_t *size);

#endif
