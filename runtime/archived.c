#include "runtime/archived.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "generator/generator.h"
#include "runtime/shipped.h"

enum { OLDEST_PTX = 80 };

wlmi_hash wlmi_archived_key(wlmi_hash what, wlmi_code code, int arch, const char *flags) {
  char target[32];
  snprintf(target, sizeof target, "%s_%d", code == WLMI_CODE_PTX ? "compute" : "sm", arch);
  const wlmi_hash parts[] = {what, wlmi_hash_text(target), wlmi_hash_text(flags)};
  return wlmi_hash_bytes(parts, sizeof parts);
}

wlm_status wlmi_archives_add(wlmi_archives *archives, const char *path, int is_shipped) {
  wlm_status status = wlmi_grow((void **)&archives->list, archives->count, &archives->capacity, sizeof *archives->list,
                                "kernel archives");
  if (status == WLM_OK) status = wlmi_kernel_archive_open(path, is_shipped, &archives->list[archives->count]);
  if (status != WLM_OK) return status;
  const wlmi_kernel_archive *added = archives->list[archives->count++];
  if (wlmi_kernel_archive_count(added) && !wlmi_kernel_archive_has(added, wlmi_generator_version()))
    wlmi_log(WLM_LOG_WARNING,
             "%s: is of another version of warploom, so its kernels are not used where there is no compiler; build it "
             "again",
             path);
  return WLM_OK;
}

wlm_status wlmi_archives_add_given(wlmi_archives *archives, const char *given) {
  const char *named = given ? given : secure_getenv("WARPLOOM_KERNELS");
  const int is_shipped = !given && (!named || !*named);
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  if (is_shipped)
    wlmi_archive_shipped_path(&path);
  else
    wlmi_text_puts(&path, named);
  if (path.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of the kernel archive"));
  if (!path.size) goto done;
  status = wlmi_archives_add(archives, path.data, is_shipped);
  if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) goto done;
  wlmi_log(WLM_LOG_WARNING, "continuing without a kernel archive: %s", wlm_error_detail());
  wlmi_clear_error();
  status = WLM_OK;
done:
  wlmi_text_release(&path);
  return status;
}

void wlmi_archives_close(wlmi_archives *archives) {
  for (int64_t i = 0; i < archives->count; i++) wlmi_kernel_archive_close(archives->list[i]);
  wlmi_free(archives->list);
  *archives = (wlmi_archives){0};
}

/* The first archive that has the key; NULL = none. */
static const wlmi_kernel_archive *find_key(const wlmi_archives *archives, wlmi_hash key) {
  for (int64_t i = 0; i < archives->count; i++)
    if (wlmi_kernel_archive_has(archives->list[i], key)) return archives->list[i];
  return NULL;
}

/* The archive with code that runs on the device, and its key: the newest machine code of the device's major version,
 * else PTX. NULL = none. */
static const wlmi_kernel_archive *find_code(const wlmi_archives *archives, const wlmi_device_info *device,
                                            wlmi_hash what, wlmi_hash *key) {
  static const char prefix[] = "sm_";
  const int arch = strncmp(device->arch, prefix, strlen(prefix)) ? 0 : atoi(device->arch + strlen(prefix));
  const int oldest[] = {[WLMI_CODE_MACHINE] = arch / 10 * 10, [WLMI_CODE_PTX] = OLDEST_PTX};
  const wlmi_kernel_archive *found = NULL;
  for (wlmi_code code = WLMI_CODE_MACHINE; arch && archives->count && code <= WLMI_CODE_PTX; code++)
    for (int i = arch; !found && i >= oldest[code]; i--) {
      *key = wlmi_archived_key(what, code, i, device->flags);
      found = find_key(archives, *key);
    }
  return found;
}

/* Most purposes are in no archive, which one look-up shows. */
int wlmi_archives_serve(const wlmi_archives *archives, const wlmi_device_info *device, wlmi_hash purpose) {
  wlmi_hash key;
  return find_key(archives, purpose) && find_code(archives, device, purpose, &key);
}

wlm_status wlmi_archives_get_source(const wlmi_archives *archives, const wlmi_device_info *device, wlmi_hash source,
                                    void **image, size_t *size) {
  wlmi_hash key;
  const wlmi_kernel_archive *archive = find_code(archives, device, source, &key);
  if (archive) return wlmi_kernel_archive_get(archive, key, image, size);
  *image = NULL;
  *size = 0;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "the kernel is in no archive");
}
