/* Where the choices of an exported library come from: its tables. It has no database, so it records nothing, and the
 * context's options that name files have no effect. */
#include "exported/learn.h"
#include "generator/generator.h"
#include "runtime/context_state.h"
#include "runtime/devices.h"

wlm_status wlmi_context_open_stores(wlm_context *context, const wlm_context_options *options) {
  if (wlmi_exported_tables.version != wlm_version())
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "the exported tables are of version %d and libwarploom-run is of version %d; export again",
                     wlmi_exported_tables.version, wlm_version());
  if (options->layer_count)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_context_options.layers: an exported library reads no files");
  if (options->record) wlmi_log(WLM_LOG_WARNING, "nothing is recorded: an exported library has no database");
  return wlmi_generator_create(NULL, &context->generator);
}

void wlmi_context_close_stores(wlm_context *context) { wlmi_generator_destroy(context->generator); }

wlm_status wlmi_context_load_learned(const wlm_context *context, int must_read, wlmi_snapshot *snapshot) {
  (void)must_read;
  const wlmi_device_record device = wlmi_device_record_of(context->device);
  snapshot->families = wlmi_generator_families(context->generator);
  return wlmi_exported_learn(&wlmi_exported_tables, &device, context->device_class, snapshot);
}

void wlmi_context_record(wlm_context *context, const wlm_plan *plan, int64_t n) {
  (void)context;
  (void)plan;
  (void)n;
}
