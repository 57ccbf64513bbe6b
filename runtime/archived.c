#include "runtime/archived.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
#include "runtime/shipped.h"

enum { OLDEST_PTX = 80 };

static wlmi_hash hash_text(const char *text) { return wlmi_hash_bytes(text, strlen(text)); }

wlmi_hash wlmi_archived_key(const char source_hash[WLM_HASH_HEX], wlmi_code code, int arch, const char *flags) {
  char target[32];
  snprintf(target, sizeof target, "%s_%d", code == WLM_CODE_PTX ? "compute" : "sm", arch);
  const wlmi_hash parts[] = {hash_text(source_hash), hash_text(target), hash_text(flags)};
  return wlmi_hash_bytes(parts, sizeof parts);
}

wlmi_hash wlmi_archived_variant_key(const char *variant) {
  const wlmi_hash parts[] = {hash_text("variant"), hash_text(variant)};
  return wlmi_hash_bytes(parts, sizeof parts);
}

wlm_status wlmi_archive_open(const char *given, wlmi_kernel_archive **archive) {
  const char *named = given ? given : secure_getenv("WARPLOOM_KERNELS");
  const int is_shipped = !given && (!named || !*named);
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  *archive = NULL;
  if (is_shipped)
    wlmi_archive_shipped_path(&path);
  else
    wlmi_text_puts(&path, named);
  if (path.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of the kernel archive"));
  if (!path.size) goto done;
  status = wlmi_kernel_archive_open(path.data, is_shipped, archive);
  if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) goto done;
  wlmi_log(WLM_LOG_WARNING, "continuing without a kernel archive: %s", wlm_error_detail());
  wlmi_clear_error();
  status = WLM_OK;
done:
  wlmi_text_release(&path);
  return status;
}

/* The key of code in the archive that runs on the device: the newest machine code of its major version, else PTX. */
static int find(const wlmi_kernel_archive *archive, const wlmi_device_info *device,
                const char source_hash[WLM_HASH_HEX], wlmi_hash *key) {
  static const char prefix[] = "sm_";
  const int arch = strncmp(device->arch, prefix, strlen(prefix)) ? 0 : atoi(device->arch + strlen(prefix));
  for (int i = arch; archive && i && i >= arch / 10 * 10; i--) {
    *key = wlmi_archived_key(source_hash, WLM_CODE_MACHINE, i, device->flags);
    if (wlmi_kernel_archive_has(archive, *key)) return 1;
  }
  for (int i = arch; archive && i >= OLDEST_PTX; i--) {
    *key = wlmi_archived_key(source_hash, WLM_CODE_PTX, i, device->flags);
    if (wlmi_kernel_archive_has(archive, *key)) return 1;
  }
  return 0;
}

int wlmi_archive_has_source(const wlmi_kernel_archive *archive, const wlmi_device_info *device,
                            const char source_hash[WLM_HASH_HEX]) {
  wlmi_hash key;
  return find(archive, device, source_hash, &key);
}

wlm_status wlmi_archive_get_source(const wlmi_kernel_archive *archive, const wlmi_device_info *device,
                                   const char source_hash[WLM_HASH_HEX], void **image, size_t *size) {
  wlmi_hash key;
  if (find(archive, device, source_hash, &key)) return wlmi_kernel_archive_get(archive, key, image, size);
  *image = NULL;
  *size = 0;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "the kernel is not in the archive");
}
