/* Loads kernels that are linked in: those of an exported library, and the built-in ones of the full library. */
#include <string.h>

#include "core/base/memory.h"
#include "exported/tables.h"
#include "runtime/context_state.h"

/* Called with the lock. */
static wlmi_kernel_entry *find_loaded(const wlm_context *context, const wlmi_exported_kernel *kernel) {
  wlmi_kernel_entry *entry = context->kernels;
  while (entry && entry->linked != kernel) entry = entry->next;
  return entry;
}

wlm_status wlmi_linked_load(wlm_context *context, const wlmi_exported_kernel *kernel, wlmi_loaded *loaded) {
  const wlmi_exported_image *image = &wlmi_exported_tables.images[kernel->image];
  wlmi_device *device = context->device;
  wlmi_kernel_entry *fresh = NULL;
  wlm_status status = WLM_OK;
  *loaded = (wlmi_loaded){.program = wlmi_exported_program(&wlmi_exported_tables, kernel, &device->info.limits)};
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_kernel_entry *entry = find_loaded(context, kernel);
  if (!entry) {
    WLM_TRY(wlmi_alloc_array(1, sizeof *fresh, "kernel", (void **)&fresh));
    *fresh = (wlmi_kernel_entry){.linked = kernel, .loaded = 1, .users = 1, .next = context->kernels};
    WLM_TRY(device->ops->load(device, &loaded->program, image->data, image->size, fresh->kernels, &fresh->module));
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
  for (int i = 0; i < WLMI_EMITTED_SLOTS; i++)
    while (context->emitted[i]) {
      wlmi_emitted *emitted = context->emitted[i];
      context->emitted[i] = emitted->next;
      wlmi_free(emitted);
    }
  while (context->kernels) {
    wlmi_kernel_entry *entry = context->kernels;
    context->kernels = entry->next;
    if (entry->loaded && entry->module) context->device->ops->unload(context->device, entry->module);
    wlmi_free(entry->image);
    wlmi_free(entry);
  }
}
