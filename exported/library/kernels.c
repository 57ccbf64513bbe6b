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

/* ---- of a problem --------------------------------------------------------------------------------------- */

static const wlmi_exported_kernel *find_variant(const wlm_context *context, const wlmi_variant *variant,
                                                const wlmi_spec *spec) {
  const wlmi_hash id = wlmi_spec_id(spec);
  return wlmi_exported_kernel_of(target_of(context), &id, variant, WLM_HELPER_NONE);
}

wlm_status wlmi_context_load_variant(wlm_context *context, const wlmi_variant *variant, const wlmi_spec *spec,
                                     wlmi_loaded *loaded) {
  char name[WLM_VARIANT_NAME];
  const wlmi_exported_kernel *kernel = find_variant(context, variant, spec);
  if (kernel) return load(context, kernel, loaded);
  wlmi_variant_print(wlmi_generator_families(context->generator), variant, name);
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "the kernel %s is not contained in the exported library", name);
}

int wlmi_context_has_variant(wlm_context *context, const wlmi_variant *variant, const wlmi_spec *spec) {
  return find_variant(context, variant, spec) != NULL;
}

/* The built-in kernel of a problem is its general one. */
static const wlmi_exported_kernel *find_general(const wlm_context *context, const wlmi_spec *spec) {
  const wlmi_hash id = wlmi_spec_id(spec);
  const wlmi_exported_target *target = target_of(context);
  const wlmi_exported_problem *problem = wlmi_exported_problem_of(target, &id);
  return problem ? &target->kernels[problem->general] : NULL;
}

wlm_status wlmi_context_load_builtin(wlm_context *context, const wlmi_spec *spec, wlmi_loaded *loaded) {
  const wlmi_exported_kernel *kernel = find_general(context, spec);
  return kernel ? load(context, kernel, loaded) : wlmi_exported_lacks(spec, &context->device->info.limits);
}

int wlmi_context_has_builtin(wlm_context *context, const wlmi_spec *spec) {
  return find_general(context, spec) != NULL;
}

/* ---- helpers -------------------------------------------------------------------------------------------- */

static const wlmi_exported_kernel *find_helper(const wlm_context *context, const wlmi_spec *spec, wlmi_helper helper) {
  const wlmi_hash id = wlmi_spec_id(spec);
  return wlmi_exported_kernel_of(target_of(context), &id, &(wlmi_variant){0}, helper);
}

int wlmi_context_has_backward(wlm_context *context, const wlmi_spec *spec, int any_width) {
  return !any_width && find_helper(context, spec, WLM_HELPER_BACKWARD);
}

wlm_status wlmi_context_load_backward(wlm_context *context, const wlmi_spec *spec, int any_width, wlmi_loaded *loaded) {
  (void)any_width;
  const wlmi_exported_kernel *kernel = find_helper(context, spec, WLM_HELPER_BACKWARD);
  return kernel ? load(context, kernel, loaded) : wlmi_exported_lacks(spec, &context->device->info.limits);
}

/* Where a helper is not contained, its work is done on the host, as it is without a compiler. */
wlm_status wlmi_context_load_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types,
                                    void *kernels[WLM_MAX_PASSES]) {
  wlmi_loaded loaded;
  wlmi_spec spec;
  WLM_CHECK(wlmi_spec_of_types(types, &spec));
  const wlmi_exported_kernel *kernel = find_helper(context, &spec, helper);
  if (!kernel)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "the exported library has no helper kernels for these index types");
  WLM_CHECK(load(context, kernel, &loaded));
  memcpy(kernels, loaded.kernels, sizeof loaded.kernels);
  return WLM_OK;
}

int wlmi_context_has_helper(wlm_context *context, wlmi_helper helper, const wlm_csr *types) {
  wlmi_spec spec;
  return wlmi_spec_of_types(types, &spec) == WLM_OK && find_helper(context, &spec, helper);
}
