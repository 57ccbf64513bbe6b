/* Where the kernels of an exported library come from: its tables. Nothing is compiled. A kernel is loaded when a plan
 * first needs it. */
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/spec_key.h"
#include "exported/tables.h"
#include "runtime/context_state.h"

static const wlmi_exported_target *target_of(const wlm_context *context) {
  return wlmi_exported_target_of(&wlmi_exported_tables, &context->device->info.limits);
}

static wlmi_program program_of(const wlmi_exported_kernel *kernel, const wlmi_limits *limits) {
  wlmi_program program = {.pass_count = kernel->pass_count,
                          .workspace = kernel->workspace,
                          .prepared = kernel->prepared,
                          .deterministic = kernel->deterministic,
                          .uses_b = kernel->uses_b,
                          .walks_a = kernel->walks_a};
  snprintf(program.variant, sizeof program.variant, "%s", kernel->name);
  snprintf(program.split, sizeof program.split, "%s", kernel->split);
  for (int i = 0; i < kernel->pass_count; i++)
    program.passes[i] = wlmi_exported_pass(&wlmi_exported_tables, kernel->passes[i], limits);
  return program;
}

/* Called with the lock. An entry's `image` is the kernel of the tables. */
static wlmi_kernel_entry *find_loaded(const wlm_context *context, const wlmi_exported_kernel *kernel) {
  wlmi_kernel_entry *entry = context->kernels;
  while (entry && entry->image != kernel) entry = entry->next;
  return entry;
}

static wlm_status load(wlm_context *context, const wlmi_exported_kernel *kernel, wlmi_loaded *loaded) {
  wlmi_device *device = context->device;
  wlmi_kernel_entry *fresh = NULL;
  wlm_status status = WLM_OK;
  *loaded = (wlmi_loaded){.program = program_of(kernel, &device->info.limits)};
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_kernel_entry *entry = find_loaded(context, kernel);
  if (!entry) {
    WLM_TRY(wlmi_alloc_array(1, sizeof *fresh, "kernel", (void **)&fresh));
    *fresh = (wlmi_kernel_entry){.image = (void *)kernel, .loaded = 1, .next = context->kernels};
    WLM_TRY(device->ops->load(device, &loaded->program, kernel->image, kernel->size, fresh->kernels, &fresh->module));
    entry = context->kernels = fresh;
    fresh = NULL;
  }
  memcpy(loaded->kernels, entry->kernels, sizeof entry->kernels);
done:
  pthread_mutex_unlock(&context->kernel_lock);
  wlmi_free(fresh);
  return status;
}

void wlmi_context_release_kernels(wlm_context *context) {
  while (context->kernels) {
    wlmi_kernel_entry *entry = context->kernels;
    context->kernels = entry->next;
    context->device->ops->unload(context->device, entry->module);
    wlmi_free(entry);
  }
}

/* ---- which ---------------------------------------------------------------------------------------------- */

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
  if (kernel) return load(context, kernel, loaded);
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
