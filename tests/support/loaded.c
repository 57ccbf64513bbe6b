#include "support/loaded.h"

#include "support/defaults.h"
#include "support/own.h"

static loaded load(wlmi_device *device, wlmi_program program) {
  loaded l = {.device = device, .program = program};
  size_t size;
  WLM_FREED GET(void *, image, device->ops->compile(device, &l.program, &image, &size));
  assert_status(WLM_OK, device->ops->load(device, &l.program, image, size, l.kernels, &l.module));
  return l;
}

loaded loaded_variant(wlmi_device *device, wlmi_generator *generator, const char *variant, const wlmi_spec *spec) {
  GET(wlmi_program, program, wlmi_generator_emit(generator, variant, spec, &device->info.limits, &program));
  return load(device, program);
}

loaded loaded_helper(wlmi_device *device, wlmi_helper helper, wlm_index rowptr_type, wlm_index colind_type, int base) {
  const wlm_csr types = CSR(.rowptr_type = rowptr_type, .colind_type = colind_type, .base = base);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  GET(wlmi_spec, spec, wlmi_spec_of_types(&types, &spec));
  GET(wlmi_program, program,
      wlmi_generator_emit_program(generator, helper, NULL, &spec, &device->info.limits, &program));
  return load(device, program);
}

void loaded_release(loaded *l) {
  if (l->module) l->device->ops->unload(l->device, l->module);
  wlmi_program_release(&l->program);
}
