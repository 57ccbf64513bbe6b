#include "runtime/mirror.h"

#include "core/base/memory.h"

static size_t bytes_of(const wlmi_mirror *m) { return (size_t)m->count * m->size; }

wlm_status wlmi_mirror_open(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count) {
  for (wlmi_mirror *m = mirrors; m < mirrors + count; m++) {
    if (!m->from && !m->to) continue;
    WLM_CHECK(wlmi_alloc_array(m->count, m->size, m->what, &m->host));
    if (m->from) WLM_CHECK(device->ops->copy_out_on(device, stream, m->host, m->from, bytes_of(m)));
  }
  return WLM_OK;
}

wlm_status wlmi_mirror_close(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count, wlm_status status) {
  for (wlmi_mirror *m = mirrors; m < mirrors + count; m++) {
    if (status == WLM_OK && m->to) status = device->ops->wait(device, stream);
    if (status == WLM_OK && m->to) status = device->ops->copy_in(device, m->to, m->host, bytes_of(m));
    wlmi_free(m->host);
  }
  return status;
}
