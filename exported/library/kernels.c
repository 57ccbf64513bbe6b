/* Where the kernels of an exported library come from: its tables. Nothing is compiled. A kernel is loaded when a plan
 * first needs it. */
#include "core/problem/spec_key.h"
#include "exported/tables.h"
#include "runtime/context_state.h"

static const wlmi_exported_target *target_of(const wlm_context *context) {
  return wlmi_exported_target_of(&wlmi_exported_tables, &context->device->info.limits);
}

/* The built-in kernel of a problem is its general one. The gradients of other numbers of columns are other kernels. */
static const wlmi_exported_kernel *find(const wlm_context *context, const wlmi_wanted *wanted) {
  const wlmi_hash id = wlmi_spec_id(wanted->spec);
  const wlmi_exported_target *target = target_of(context);
  if (wanted->helper || wanted->variant.family)
    return wlmi_exported_kernel_of(target, &id, &wanted->variant, wanted->helper);
  const wlmi_exported_problem *problem = wlmi_exported_problem_of(target, &id);
  return problem ? &target->kernels[problem->general] : NULL;
}

/* Where another helper is not contained, its work is done on the host, as it is without a compiler. */
wlm_status wlmi_context_load(wlm_context *context, const wlmi_wanted *wanted, wlmi_loaded *loaded) {
  char name[WLMI_VARIANT_NAME];
  const wlmi_exported_kernel *kernel = find(context, wanted);
  if (kernel) return wlmi_linked_load(context, kernel, loaded);
  if (wanted->helper > WLMI_HELPER_GRADIENT)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "the exported library has no helper kernels for these index types");
  if (wanted->helper || !wanted->variant.family)
    return wlmi_exported_lacks(wanted->spec, &context->device->info.limits);
  wlmi_variant_print(wlmi_generator_families(context->generator), &wanted->variant, name);
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "the kernel %s is not contained in the exported library", name);
}

int wlmi_context_has(wlm_context *context, const wlmi_wanted *wanted) {
  return !wanted->any_width && find(context, wanted);
}
