/* From a program to loaded kernels. A program is looked for in memory, then in the kernel cache on disk,
 * then compiled; the key is a hash of everything that makes the binary what it is, so a new driver,
 * compiler, flag or template simply misses. */
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/memory.h"
#include "runtime/context_state.h"

static void kernel_key(const wlm_context *context, const wlmi_program *program, char hex[33]) {
  const wlmi_device_info *info = &context->device->info;
  const char *parts[] = {program->source, info->kind, info->arch, info->compiler, info->compiler_file};
  enum { PARTS = sizeof parts / sizeof *parts };
  wlmi_hash pieces[PARTS]; /* of each part, so that no two lists of parts join to the same text */
  for (int i = 0; i < PARTS; i++) pieces[i] = wlmi_hash_bytes(parts[i], strlen(parts[i]));
  wlmi_hash_to_hex(wlmi_hash_bytes(pieces, sizeof pieces), hex);
}

static wlmi_kernel_entry *find_entry(const wlm_context *context, const char *key) {
  for (wlmi_kernel_entry *e = context->kernels; e; e = e->next)
    if (!strcmp(e->key, key)) return e;
  return NULL;
}

static wlm_status add_entry(wlm_context *context, const char *key, wlmi_kernel_entry **out) {
  wlmi_kernel_entry *entry = wlmi_alloc_zero(1, sizeof *entry);
  if (!entry) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "kernel entry");
  snprintf(entry->key, sizeof entry->key, "%s", key);
  entry->next = context->kernels;
  *out = context->kernels = entry;
  return WLM_OK;
}

static wlm_status compile_or_fetch(wlm_context *context, const wlmi_program *program, const char *key, void **image,
                                   size_t *size) {
  if (context->cache && wlmi_kernel_cache_get(context->cache, key, image, size) == WLM_OK) return WLM_OK;
  wlmi_clear_error(); /* a miss is no failure of the caller's call */
  wlm_status status = context->device->ops->compile(context->device, program, image, size);
  if (status != WLM_OK) return wlmi_fail_in(status, "%s", program->variant);
  if (context->cache && wlmi_kernel_cache_put(context->cache, key, *image, *size) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "a kernel was compiled but not kept: %s", wlm_error_detail());
  return WLM_OK;
}

/* The lock is not held while compiling, so two threads may compile one program; the first to end is kept. */
wlm_status wlmi_context_compile(wlm_context *context, const wlmi_program *program) {
  char key[33];
  void *image = NULL;
  size_t size = 0;
  kernel_key(context, program, key);
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_kernel_entry *entry = find_entry(context, key);
  pthread_mutex_unlock(&context->kernel_lock);
  if (entry) return WLM_OK;
  wlm_status status = compile_or_fetch(context, program, key, &image, &size);
  if (status != WLM_OK) return status;
  pthread_mutex_lock(&context->kernel_lock);
  if (!find_entry(context, key)) {
    status = add_entry(context, key, &entry);
    if (status == WLM_OK) {
      entry->image = image;
      entry->size = size;
      image = NULL;
    }
  }
  pthread_mutex_unlock(&context->kernel_lock);
  wlmi_free(image);
  return status;
}

wlm_status wlmi_context_load(wlm_context *context, const wlmi_program *program, void *kernels[WLM_MAX_PASSES]) {
  char key[33];
  wlm_status status = wlmi_context_compile(context, program);
  if (status != WLM_OK) return status;
  kernel_key(context, program, key);
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_kernel_entry *entry = find_entry(context, key);
  if (!entry->loaded) {
    status =
        context->device->ops->load(context->device, program, entry->image, entry->size, entry->kernels, &entry->module);
    entry->loaded = status == WLM_OK;
    if (entry->loaded) {
      wlmi_free(entry->image);
      entry->image = NULL;
    }
  }
  memcpy(kernels, entry->kernels, sizeof entry->kernels);
  pthread_mutex_unlock(&context->kernel_lock);
  return status;
}

/* Everything that the source and the launches depend on besides the device. */
static wlmi_hash loaded_key(const char *variant, const wlmi_spec *spec) {
  wlm_problem problem = spec->problem;
  wlm_csr types = WLM_CSR_INIT;
  problem.policy.expected_calls = 1;
  problem.custom = *spec->custom ? spec->custom : NULL;
  types.rowptr_type = spec->rowptr_type;
  types.colind_type = spec->colind_type;
  types.value_type = spec->value_type;
  types.values = spec->has_values ? spec : NULL; /* only whether there are any counts */
  const wlmi_hash parts[] = {wlmi_problem_id(&problem, &types), wlmi_hash_bytes(variant, strlen(variant))};
  return wlmi_hash_bytes(parts, sizeof parts);
}

static wlmi_loaded *find_loaded(const wlm_context *context, const wlmi_hash *key) {
  for (wlmi_loaded *l = context->loaded; l; l = l->next)
    if (l->key.low == key->low && l->key.high == key->high) return l;
  return NULL;
}

static wlmi_loaded *find_loaded_locked(wlm_context *context, const wlmi_hash *key) {
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_loaded *found = find_loaded(context, key);
  pthread_mutex_unlock(&context->kernel_lock);
  return found;
}

/* Of two threads that loaded the same both have good kernels. */
static wlm_status keep_loaded(wlm_context *context, const wlmi_hash *key, const wlmi_program *program,
                              void *const kernels[WLM_MAX_PASSES]) {
  wlmi_loaded *loaded = wlmi_alloc_zero(1, sizeof *loaded);
  if (!loaded) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "loaded kernels");
  loaded->key = *key;
  loaded->program = *program;
  loaded->program.source = NULL;
  memcpy(loaded->kernels, kernels, sizeof loaded->kernels);
  pthread_mutex_lock(&context->kernel_lock);
  loaded->next = context->loaded;
  context->loaded = loaded;
  pthread_mutex_unlock(&context->kernel_lock);
  return WLM_OK;
}

int wlmi_context_has_variant(wlm_context *context, const char *variant, const wlmi_spec *spec) {
  const wlmi_hash key = loaded_key(variant, spec);
  return find_loaded_locked(context, &key) != NULL;
}

/* What is loaded under the key, or what `emit` gives, compiled and kept. The program comes without its source. */
typedef wlm_status emit(const wlm_context *context, const char *variant, const wlmi_spec *spec, wlmi_program *program);

static wlm_status load_once(wlm_context *context, emit *function, const char *variant, const wlmi_spec *spec,
                            wlmi_program *program, void *kernels[WLM_MAX_PASSES]) {
  const wlmi_hash key = loaded_key(variant, spec);
  const wlmi_loaded *loaded = find_loaded_locked(context, &key);
  wlm_status status = WLM_OK;
  *program = (wlmi_program){0};
  if (loaded) {
    *program = loaded->program;
    memcpy(kernels, loaded->kernels, sizeof loaded->kernels);
    return WLM_OK;
  }
  WLM_TRY(function(context, variant, spec, program));
  WLM_TRY(wlmi_context_load(context, program, kernels));
  WLM_TRY(keep_loaded(context, &key, program, kernels));
done:
  wlmi_program_release(program);
  return status;
}

static wlm_status emit_variant(const wlm_context *context, const char *variant, const wlmi_spec *spec,
                               wlmi_program *program) {
  return wlmi_generator_emit(context->generator, variant, spec, &context->device->info.limits, program);
}

static wlm_status emit_backward(const wlm_context *context, const char *variant, const wlmi_spec *spec,
                                wlmi_program *program) {
  (void)variant;
  return wlmi_generator_arg_backward(context->generator, spec, &context->device->info.limits, program);
}

static wlm_status emit_stats(const wlm_context *context, const char *variant, const wlmi_spec *spec,
                             wlmi_program *program) {
  (void)variant;
  return wlmi_generator_stats(context->generator, spec->rowptr_type, program);
}

static wlm_status emit_transpose(const wlm_context *context, const char *variant, const wlmi_spec *spec,
                                 wlmi_program *program) {
  (void)variant;
  return wlmi_generator_transpose(context->generator, spec, program);
}

wlm_status wlmi_context_load_variant(wlm_context *context, const char *variant, const wlmi_spec *spec,
                                     wlmi_program *program, void *kernels[WLM_MAX_PASSES]) {
  return load_once(context, emit_variant, variant, spec, program, kernels);
}

wlm_status wlmi_context_load_backward(wlm_context *context, const wlmi_spec *spec, wlmi_program *program,
                                      void *kernels[WLM_MAX_PASSES]) {
  return load_once(context, emit_backward, "gradients by argmax", spec, program, kernels);
}

/* Of kernels that depend on a matrix's index types alone. */
static wlm_status spec_for_types(const wlm_csr *csr, wlmi_spec *spec) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr pattern = *csr;
  problem.n = 1;
  pattern.values = NULL;
  return wlmi_spec_make(&problem, &pattern, spec);
}

static wlm_status load_for_types(wlm_context *context, emit *function, const char *name, const wlm_csr *csr,
                                 void *kernels[WLM_MAX_PASSES]) {
  wlmi_program program;
  wlmi_spec spec;
  const wlm_status status = spec_for_types(csr, &spec);
  return status == WLM_OK ? load_once(context, function, name, &spec, &program, kernels) : status;
}

static const char stats_name[] = "stats";

wlm_status wlmi_context_load_stats(wlm_context *context, const wlm_csr *csr, void *kernels[WLM_MAX_PASSES]) {
  return load_for_types(context, emit_stats, stats_name, csr, kernels);
}

int wlmi_context_has_stats(wlm_context *context, const wlm_csr *csr) {
  wlmi_spec spec;
  return spec_for_types(csr, &spec) == WLM_OK && wlmi_context_has_variant(context, stats_name, &spec);
}

wlm_status wlmi_context_load_transpose(wlm_context *context, const wlm_csr *csr, void *kernels[WLM_MAX_PASSES]) {
  return load_for_types(context, emit_transpose, "transpose", csr, kernels);
}

wlm_status wlmi_context_load_builtin(wlm_context *context, const wlmi_spec *spec, wlmi_program *program,
                                     void *kernels[WLM_MAX_PASSES]) {
  const wlmi_device_ops *ops = context->device->ops;
  wlmi_module *module = NULL;
  char text[sizeof "builtin " + WLM_SPEC_KEY] = "builtin ", key[33];
  wlm_status status = WLM_OK;
  if (spec->problem.operation != WLM_SPMM || (spec->problem.transpose && spec->has_values))
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there is no %s",
                     spec->problem.transpose ? "transpose of a matrix with values" : "sddmm");
  if (spec->problem.heads > 1)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there are no heads: an edge has one value");
  if (spec->problem.epilogue.bias || spec->problem.epilogue.activation)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there is no epilogue: a bias or an activation needs one");
  wlmi_spec_key(spec, text + strlen(text));
  wlmi_hash_to_hex(wlmi_hash_bytes(text, strlen(text)), key);
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_kernel_entry *entry = find_entry(context, key);
  if (!entry) {
    wlmi_program loaded = {0};
    void *found[WLM_MAX_PASSES] = {0};
    WLM_TRY(ops->load_builtin(context->device, spec, &loaded, found, &module));
    WLM_TRY(add_entry(context, key, &entry));
    entry->module = module;
    entry->loaded = 1;
    entry->builtin = loaded;
    memcpy(entry->kernels, found, sizeof found);
    module = NULL;
  }
  *program = entry->builtin;
  memcpy(kernels, entry->kernels, sizeof entry->kernels);
done:
  if (module) ops->unload(context->device, module);
  pthread_mutex_unlock(&context->kernel_lock);
  return status;
}

int wlmi_context_has_builtin(wlm_context *context, const wlmi_spec *spec) {
  wlmi_program program;
  void *kernels[WLM_MAX_PASSES];
  const int has = wlmi_context_load_builtin(context, spec, &program, kernels) == WLM_OK;
  if (!has) wlmi_clear_error();
  return has;
}

void wlmi_context_release_kernels(wlm_context *context) {
  while (context->loaded) {
    wlmi_loaded *loaded = context->loaded;
    context->loaded = loaded->next;
    wlmi_free(loaded);
  }
  while (context->kernels) {
    wlmi_kernel_entry *entry = context->kernels;
    context->kernels = entry->next;
    if (entry->loaded && entry->module) context->device->ops->unload(context->device, entry->module);
    wlmi_free(entry->image);
    wlmi_free(entry);
  }
}
