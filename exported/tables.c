#include "exported/tables.h"

#include <stdio.h>
const wlmi_exported_target *wlmi_exported_target_of(const wlmi_exported *tables, const wlmi_limits *limits) {
  for (int64_t i = 0; i < tables->target_count; i++) {
    const wlmi_exported_target *t = &tables->targets[i];
    if (t->target == limits->target && t->arch == limits->arch) return t;
  }
  return NULL;
}

int wlmi_exported_arch(const wlmi_exported *tables, int arch) {
  int newest = 0;
  for (int64_t i = 0; i < tables->target_count; i++) {
    const wlmi_exported_target *t = &tables->targets[i];
    const int runs = t->arch <= arch && (t->is_ptx || t->arch / 10 == arch / 10);
    if (t->target == WLMI_TARGET_CUDA && runs && t->arch > newest) newest = t->arch;
  }
  return newest ? newest : arch;
}

const wlmi_exported_problem *wlmi_exported_problem_of(const wlmi_exported_target *target, const wlmi_hash *spec) {
  for (int64_t i = 0; target && i < target->problem_count; i++)
    if (wlmi_hash_equal(target->problems[i].spec, *spec)) return &target->problems[i];
  return NULL;
}

const wlmi_exported_kernel *wlmi_exported_kernel_of(const wlmi_exported_target *target, const wlmi_hash *spec,
                                                    const wlmi_variant *variant, wlmi_helper helper) {
  for (int64_t i = 0; target && i < target->kernel_count; i++) {
    const wlmi_exported_kernel *k = &target->kernels[i];
    if (k->helper == helper && wlmi_hash_equal(k->spec, *spec) && !wlmi_variant_compare(&k->variant, variant)) return k;
  }
  return NULL;
}

wlm_status wlmi_exported_lacks(const wlmi_spec *spec, const wlmi_limits *limits) {
  char key[WLMI_SPEC_KEY], device[32] = "the host";
  wlmi_spec_key(spec, key);
  if (limits->target == WLMI_TARGET_CUDA) snprintf(device, sizeof device, "sm_%d", limits->arch);
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "the exported library does not contain %s%s%s%s with n = %lld for %s", key,
                   spec->problem.policy.deterministic ? ", deterministic" : "",
                   spec->problem.epilogue.bias ? ", with a bias" : "",
                   spec->problem.epilogue.activation ? ", with an activation" : "", (long long)spec->problem.n, device);
}

wlmi_pass wlmi_exported_pass(const wlmi_exported *tables, int index, const wlmi_limits *limits) {
  wlmi_pass pass = tables->passes[index];
  pass.wave *= limits->processors;
  pass.processors *= limits->processors;
  return pass;
}

wlmi_program wlmi_exported_program(const wlmi_exported *tables, const wlmi_exported_kernel *kernel,
                                   const wlmi_limits *limits) {
  wlmi_program program = {.pass_count = kernel->pass_count,
                          .workspace = kernel->workspace,
                          .prepared = kernel->prepared,
                          .deterministic = kernel->deterministic,
                          .uses_b = kernel->uses_b,
                          .walks_a = kernel->walks_a};
  snprintf(program.variant, sizeof program.variant, "%s", kernel->name);
  snprintf(program.split, sizeof program.split, "%s", kernel->split);
  for (int i = 0; i < kernel->pass_count; i++)
    program.passes[i] = wlmi_exported_pass(tables, kernel->passes[i], limits);
  return program;
}

wlmi_hash wlmi_exported_builtin_id(const wlmi_spec *spec) {
  wlmi_spec straight = *spec;
  char key[WLMI_SPEC_KEY];
  straight.problem.transpose = 0;
  wlmi_spec_key(&straight, key);
  return wlmi_hash_text(key);
}

const wlmi_exported_kernel *wlmi_exported_builtin(const wlmi_exported *tables, const wlmi_limits *limits,
                                                  const wlmi_spec *spec) {
  const wlmi_hash id = wlmi_exported_builtin_id(spec);
  wlmi_limits contained = *limits;
  contained.arch = wlmi_exported_arch(tables, limits->arch);
  return wlmi_exported_kernel_of(wlmi_exported_target_of(tables, &contained), &id, &(wlmi_variant){0},
                                 WLMI_HELPER_NONE);
}
