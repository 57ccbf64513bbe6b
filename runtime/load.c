/* Loads what a decision chose: its entries are tried from the first on. */
#include "runtime/load.h"

#include <string.h>

#include "core/base/memory.h"
#include "runtime/dispatch/layout.h"

/* The gradients by argmax have a second form, for any number of columns. */
wlmi_wanted wlmi_wanted_of(const wlmi_spec *spec, const wlmi_decision *decision, int entry) {
  const wlmi_entry *e = &decision->entries[entry];
  const int is_only = e->step == WLMI_STEP_ONLY;
  return (wlmi_wanted){.spec = spec,
                       .variant = e->variant,
                       .helper = is_only ? WLMI_HELPER_GRADIENT : WLMI_HELPER_NONE,
                       .any_width = is_only && entry};
}

/* The entry to try next. Without compiler and archive only the built-in kernel can help. */
static int next_entry(const wlm_context *context, const wlmi_decision *decision, int entry, wlm_status status) {
  return status == WLM_ERR_NO_COMPILER && !context->archives.count ? decision->entry_count - 1 : entry + 1;
}

/* Loads the first entry of the decision, from `entry` on, that can be loaded. `chosen` is the status of the selection:
 * if it is an error, the built-in kernel is the only entry. If no entry loads, returns the first error, because that is
 * the one to fix. */
static wlm_status load(wlm_context *context, wlmi_decision *d, const wlmi_spec *spec, wlm_status chosen, int entry,
                       wlmi_loaded *loaded) {
  wlm_status first = chosen, status = chosen;
  char *reason = chosen == WLM_OK ? NULL : wlmi_strdup(wlm_error_detail());
  for (;;) {
    const wlmi_wanted wanted = wlmi_wanted_of(spec, d, entry);
    status = wlmi_context_load(context, &wanted, loaded);
    if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) break;
    if (first == WLM_OK) {
      first = status;
      reason = wlmi_strdup(wlm_error_detail());
    }
    if (entry + 1 == d->entry_count) break;
    entry = next_entry(context, d, entry, status);
  }
  if (status == WLM_OK && first != WLM_OK) {
    char name[WLMI_VARIANT_NAME];
    wlmi_entry_print(d, entry, name);
    wlmi_log(WLM_LOG_WARNING, "falling back to %s: %s",
             d->entries[entry].step == WLMI_STEP_BUILTIN ? "the built-in kernel" : name, reason ? reason : "");
    wlmi_decision_advance(d, entry, reason ? reason : "");
  } else if (status == WLM_OK && entry) {
    wlmi_decision_advance(d, entry, "its kernel is not compiled yet");
  } else if (status != WLM_OK && status != WLM_ERR_OUT_OF_MEMORY) {
    status = reason ? wlmi_fail(first, "%s", reason) : first;
  }
  wlmi_free(reason);
  return status;
}

/* The kernels that copy column-major arrays stay loaded, as helpers do. */
static wlm_status add_layout(wlm_context *context, wlm_plan *plan) {
  const wlm_csr types = WLM_CSR_INIT; /* they depend on no type of A */
  wlmi_spec spec;
  if (!wlmi_has_columns(&plan->shape.arrays)) return WLM_OK;
  WLM_CHECK(wlmi_spec_of_types(&types, &spec));
  return wlmi_context_load(context, &(wlmi_wanted){.spec = &spec, .helper = WLMI_HELPER_LAYOUT}, &plan->shape.layout);
}

wlm_status wlmi_load_plan(wlm_context *context, const wlmi_spec *spec, wlm_status chosen, int entry, wlm_plan *plan) {
  wlmi_loaded loaded;
  wlmi_decision *decision = &plan->reason.decision;
  WLM_CHECK(load(context, decision, spec, chosen, entry, &loaded));
  WLM_CHECK(wlmi_plan_set_program(plan, context->device, &loaded, spec));
  if (spec->problem.operation == WLM_ARGMAX_GRADIENT && spec->problem.policy.deterministic &&
      !loaded.program.deterministic)
    return wlmi_fail(
        WLM_ERR_UNSUPPORTED,
        "wlm_problem: argmax_gradient with policy.deterministic is not supported on a GPU, where terms are "
        "added atomically, in any order");
  snprintf(decision->variant, sizeof decision->variant, "%s", loaded.program.variant);
  return add_layout(context, plan);
}

/* ---- helpers -------------------------------------------------------------------------------------------- */

wlm_status wlmi_load_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types,
                            void *kernels[WLMI_MAX_PASSES]) {
  wlmi_loaded loaded;
  wlmi_spec spec;
  WLM_CHECK(wlmi_spec_of_types(types, &spec));
  WLM_CHECK(wlmi_context_load(context, &(wlmi_wanted){.spec = &spec, .helper = helper}, &loaded));
  memcpy(kernels, loaded.kernels, sizeof loaded.kernels);
  return WLM_OK;
}

int wlmi_has_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types) {
  wlmi_spec spec;
  return wlmi_spec_of_types(types, &spec) == WLM_OK &&
         wlmi_context_has(context, &(wlmi_wanted){.spec = &spec, .helper = helper});
}
