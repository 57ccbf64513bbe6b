#include "runtime/helper.h"

#include <string.h>

#include "core/base/memory.h"
#include "runtime/load.h"

wlm_status wlmi_help_load(wlm_context *context, wlmi_helper helper, const wlm_csr *types, int may_wait,
                          wlmi_help *help) {
  int on_host = context->device->info.limits.target != WLMI_TARGET_CUDA;
  *help = (wlmi_help){.kernels = NULL};
  if (!on_host && !may_wait) WLM_CHECK(wlmi_background_helps(context, helper, types, &on_host));
  if (on_host) return WLM_OK;
  const wlm_status status = wlmi_load_helper(context, helper, types, help->loaded);
  if (status == WLM_ERR_NO_COMPILER) {
    wlmi_clear_error();
    return WLM_OK;
  }
  if (status == WLM_OK) help->kernels = help->loaded;
  return status;
}

wlm_status wlmi_help_begin(wlm_context *context, wlmi_helper helper, const wlm_csr *types, int may_wait, void *stream,
                           size_t scratch_size, wlmi_help *help) {
  WLM_CHECK(wlmi_help_load(context, helper, types, may_wait, help));
  if (!help->kernels) return WLM_OK;
  return wlmi_workspace_take(&context->workspaces, context->device, stream, scratch_size, &help->scratch);
}

void wlmi_help_end(wlm_context *context, void *stream, wlmi_help *help) {
  wlmi_workspace_give(&context->workspaces, context->device, stream, &help->scratch);
}

wlm_status wlmi_help_launch(const wlmi_device *device, void *kernel, int64_t blocks, unsigned int threads,
                            int dependent, const struct wlm_args *args, void *stream) {
  if (blocks > INT32_MAX) return wlmi_fail(WLM_ERR_OVERFLOW, "%lld blocks", (long long)blocks);
  const wlmi_launch one = {
      .kernel = kernel, .grid = {(unsigned int)blocks, 1, 1}, .threads = threads, .dependent = dependent};
  return device->ops->launch(device, &one, args, stream);
}

static size_t bytes_of(const wlmi_mirror *m) { return (size_t)m->count * m->size; }

wlm_status wlmi_mirror_open(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count) {
  if (device->info.limits.target == WLMI_TARGET_HOST) return WLM_OK;
  for (wlmi_mirror *m = mirrors; m < mirrors + count; m++) {
    void *array, *host;
    memcpy(&array, m->pointer, sizeof array);
    if (!array) continue;
    WLM_CHECK(wlmi_alloc_array(m->count, m->size, m->what, &host));
    memcpy(m->pointer, &host, sizeof host);
    m->on_device = array;
    if (!m->is_result) WLM_CHECK(device->ops->copy_out(device, stream, host, array, bytes_of(m)));
  }
  return WLM_OK;
}

wlm_status wlmi_mirror_close(wlmi_device *device, void *stream, wlmi_mirror *mirrors, int count, wlm_status status) {
  for (wlmi_mirror *m = mirrors; m < mirrors + count; m++) {
    void *host;
    if (!m->on_device) continue;
    memcpy(&host, m->pointer, sizeof host);
    if (status == WLM_OK && m->is_result) status = device->ops->wait(device, stream);
    if (status == WLM_OK && m->is_result) status = device->ops->copy_in(device, m->on_device, host, bytes_of(m));
    wlmi_free(host);
  }
  return status;
}
