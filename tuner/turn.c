/* The turn is a lock (flock) on a file beside the kernel cache. The system releases it when the process ends, in
 * whatever way. */
#include "tuner/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/path.h"
#include "core/base/private_file.h"
#include "tuner/timing.h"

static const struct timespec between_tries = {.tv_nsec = 100 * 1000 * 1000};

/* $XDG_CACHE_HOME/warploom/tuning-KEY.lock: the key is a hash of kind, name and place of the device. Only in a folder
 * to which nobody else may write, because another user could keep the file locked. */
static wlm_status lock_path(const wlmi_device_info *device, wlmi_text *path) {
  wlmi_text name = {0}, file = {0};
  char key[WLMI_HASH_HEX];
  wlm_status status;
  wlmi_text_printf(&name, "%s/%s/%s", device->kind, device->name, device->bus);
  if (name.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the name of a lock file"));
  wlmi_hash_to_hex(wlmi_hash_bytes(name.data, name.size), key);
  WLM_TRY(wlmi_kernel_cache_default_path(&file));
  file.size = (size_t)(strrchr(file.data, '/') - file.data);
  wlmi_text_printf(&file, "/tuning-%.16s.lock", key);
  if (file.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the name of a lock file"));
  status = wlmi_private_path(file.data, 1, path, NULL);
done:
  wlmi_text_release(&file);
  wlmi_text_release(&name);
  return status;
}

static wlm_status wait_for(int file, const wlmi_device_info *device, int (*tick)(void *user), void *user,
                           wlmi_turn *turn) {
  while (flock(file, LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return WLM_OK; /* a file system without locks */
    if (!turn->waits++)
      wlmi_log(WLM_LOG_WARNING, "another tuning runs on %s; waiting for its turn to end", device->name);
    if (tick && tick(user)) return wlmi_fail(WLM_ERR_CANCELLED, "stopped while another tuning ran on the device");
    nanosleep(&between_tries, NULL);
  }
  return WLM_OK;
}

wlm_status wlmi_turn_take(const wlmi_device_info *device, int (*tick)(void *user), void *user, wlmi_turn *turn) {
  const double start = wlmi_seconds();
  wlmi_text path = {0};
  struct stat info;
  wlm_status status = lock_path(device, &path);
  *turn = (wlmi_turn){.file = -1};
  if (status == WLM_OK) turn->file = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (turn->file >= 0 && (fstat(turn->file, &info) || wlmi_is_foreign(info.st_uid))) wlmi_turn_end(turn);
  wlmi_text_release(&path);
  wlmi_clear_error();
  if (turn->file < 0) return WLM_OK;
  status = wait_for(turn->file, device, tick, user, turn);
  turn->seconds = wlmi_seconds() - start;
  if (status != WLM_OK) wlmi_turn_end(turn);
  return status;
}

void wlmi_turn_end(wlmi_turn *turn) {
  if (turn->file >= 0) close(turn->file); /* which unlocks it */
  turn->file = -1;
}
