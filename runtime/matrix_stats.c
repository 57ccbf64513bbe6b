/* Measures the stats of a matrix: with kernels on a GPU that has a compiler, otherwise on the host. */
#include "runtime/context_state.h"
#include "runtime/stats_device.h"

/* The kernels that measure stats, or *kernels = NULL if the host measures. */
static wlm_status stats_kernels(wlm_context *context, const wlm_csr *csr, void *loaded[WLM_MAX_PASSES],
                                void ***kernels) {
  *kernels = NULL;
  if (context->device->info.limits.target != WLM_TARGET_CUDA) return WLM_OK;
  int on_host;
  wlm_status status = wlmi_background_helps(context, WLM_HELPER_STATS, csr, &on_host);
  if (status != WLM_OK || on_host) return status;
  status = wlmi_context_load_helper(context, WLM_HELPER_STATS, csr, loaded);
  if (status == WLM_OK) *kernels = loaded;
  if (status != WLM_ERR_NO_COMPILER) return status;
  wlmi_clear_error();
  return WLM_OK;
}

typedef wlm_status measure(wlmi_device *device, void *const *kernels, const wlm_csr *csr, void *stream, void *scratch,
                           wlm_stats *stats);

static wlm_status with_scratch(measure *function, wlm_context *context, const wlm_csr *csr, void *stream,
                               wlm_stats *stats) {
  void *loaded[WLM_MAX_PASSES] = {0}, **kernels;
  wlmi_lent scratch = {0};
  wlm_status status;
  WLM_TRY(stats_kernels(context, csr, loaded, &kernels));
  if (kernels)
    WLM_TRY(wlmi_workspace_take(&context->workspaces, context->device, stream, wlmi_stats_scratch_size(csr), &scratch));
  status = function(context->device, kernels, csr, stream, scratch.memory, stats);
done:
  wlmi_workspace_give(&context->workspaces, context->device, stream, &scratch);
  return status;
}

wlm_status wlmi_matrix_make_stats(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats) {
  return with_scratch(wlmi_stats_measure, context, csr, stream, stats);
}

wlm_status wlmi_matrix_add_fingerprint(wlm_context *context, const wlm_csr *csr, void *stream, wlm_stats *stats) {
  return with_scratch(wlmi_stats_measure_fingerprint, context, csr, stream, stats);
}
