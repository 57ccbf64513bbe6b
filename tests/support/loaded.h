/* A program that is compiled and loaded: HELD(loaded) l = loaded_variant(device, generator, variant, &spec). Unload it
 * before the device is closed. */
#pragma once

#include "generator/generator.h"
#include "runtime/dispatch/device.h"

typedef struct loaded {
  wlmi_device *device;
  wlmi_program program;
  wlmi_module *module;
  void *kernels[WLMI_MAX_PASSES];
} loaded;

loaded loaded_variant(wlmi_device *device, wlmi_generator *generator, const char *variant, const wlmi_spec *spec);
/* The kernels around a product, for matrices with these types of indices. */
loaded loaded_helper(wlmi_device *device, wlmi_helper helper, wlm_index rowptr_type, wlm_index colind_type, int base);
void loaded_release(loaded *l);
