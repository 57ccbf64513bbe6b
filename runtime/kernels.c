/* Loads the kernels of a variant. A source is emitted once for each variant and spec. Its binary comes from memory,
 * from the kernel archive, from the kernel cache on disk, or from the compiler. The cache's key is a hash of everything
 * that the binary depends on, so a kernel is compiled again after a change of driver, compiler, flags or template. The
 * cache gets a binary once it was loaded, so none that ends the process which loads it. */
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/problem/spec_key.h"
#include "exported/tables.h"
#include "runtime/archived.h"
#include "runtime/context_state.h"
#include "runtime/purpose.h"

static void kernel_key(const wlm_context *context, const wlmi_program *program, char hex[33]) {
  const wlmi_device_info *info = &context->device->info;
  const char *parts[] = {program->source, info->kind, info->arch, info->compiler, info->compiler_file};
  enum { PARTS = sizeof parts / sizeof *parts };
  wlmi_hash pieces[PARTS]; /* a hash for each part, so that different lists of parts never give equal keys */
  for (int i = 0; i < PARTS; i++) pieces[i] = wlmi_hash_text(parts[i]);
  wlmi_hash_to_hex(wlmi_hash_bytes(pieces, sizeof pieces), hex);
}

/* Whether it has kernels or an image of them. */
static int is_compiled(const wlmi_kernel_entry *entry) { return entry && (entry->loaded || entry->image); }

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

/* Looks into the origins from `first` on, in the order archive, cache, compiler. *origin is where it was found. */
static wlm_status get_image(wlm_context *context, const wlmi_program *program, const char *key, wlmi_origin first,
                            void **image, size_t *size, wlmi_origin *origin) {
  wlm_status status = WLM_ERR_NOT_FOUND;
  *origin = first;
  if (*origin == WLMI_ORIGIN_ARCHIVE) {
    const wlmi_hash source = wlmi_hash_text(program->source);
    status = wlmi_archives_get_source(&context->archives, &context->device->info, source, image, size);
    if (status != WLM_OK) *origin = WLMI_ORIGIN_CACHE;
  }
  if (*origin == WLMI_ORIGIN_CACHE && status == WLM_ERR_NOT_FOUND) {
    if (context->cache) status = wlmi_kernel_cache_get(context->cache, key, image, size);
    if (status != WLM_OK) *origin = WLMI_ORIGIN_COMPILER;
  }
  if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY) return status;
  wlmi_clear_error(); /* a miss is no failure of the caller's call */
  status = context->device->ops->compile(context->device, program, image, size);
  return status == WLM_OK ? WLM_OK : wlmi_fail_in(status, "%s", program->variant);
}

/* Gives an entry its image, unless another thread has loaded one meanwhile. Takes ownership of the image. Called with
 * the lock. */
static void give_image(wlmi_kernel_entry *entry, void *image, size_t size, wlmi_origin origin) {
  void *unused = image;
  if (!entry->loaded) {
    unused = entry->image;
    entry->image = image;
    entry->size = size;
    entry->origin = origin;
  }
  wlmi_free(unused);
}

/* The lock is not held while compiling. */
static wlm_status compile(wlm_context *context, const wlmi_program *program, wlmi_kernel_entry **entry) {
  char key[33];
  void *image = NULL;
  size_t size = 0;
  wlmi_origin origin;
  kernel_key(context, program, key);
  pthread_mutex_lock(&context->kernel_lock);
  *entry = find_entry(context, key);
  const int is_there = is_compiled(*entry);
  pthread_mutex_unlock(&context->kernel_lock);
  if (is_there) return WLM_OK;
  wlm_status status = get_image(context, program, key, WLMI_ORIGIN_ARCHIVE, &image, &size, &origin);
  if (status != WLM_OK) return status;
  pthread_mutex_lock(&context->kernel_lock);
  *entry = find_entry(context, key);
  if (!*entry) status = add_entry(context, key, entry);
  if (status == WLM_OK)
    give_image(*entry, image, size, origin);
  else
    wlmi_free(image);
  pthread_mutex_unlock(&context->kernel_lock);
  return status;
}

/* ---- loading -------------------------------------------------------------------------------------------- */

/* Unloads the kernels that nothing uses. Called with the lock. */
static void unload_unused(wlm_context *context) {
  for (wlmi_kernel_entry *e = context->kernels; e; e = e->next) {
    if (!e->module || atomic_load(&e->users)) continue;
    context->device->ops->unload(context->device, e->module);
    e->module = NULL;
    e->loaded = 0;
    context->loaded--;
  }
}

/* Before the kernels of an entry are loaded: if there are too many, unloads those that nothing uses. The cached
 * decisions use theirs, so those that were not taken lately are dropped, and if that is not enough, all. If plans use
 * so many, this is not tried again for each further one. */
static void make_room(wlm_context *context, const wlmi_kernel_entry *entry) {
  const int most = context->device->info.most_loaded;
  int is_full = most > 0;
  for (int round = 0; is_full && round < 3; round++) {
    if (round) wlmi_decisions_thin(&context->decisions);
    pthread_mutex_lock(&context->kernel_lock);
    is_full = !entry->loaded && context->loaded >= most && (round || context->loaded >= context->unload_at);
    if (is_full) {
      unload_unused(context);
      is_full = context->loaded >= most;
      context->unload_at = context->loaded + most / 4;
    }
    pthread_mutex_unlock(&context->kernel_lock);
  }
}

static void cache_image(wlm_context *context, const char *key, const void *image, size_t size) {
  if (!context->cache || wlmi_kernel_cache_put(context->cache, key, image, size) == WLM_OK) return;
  wlmi_log(WLM_LOG_WARNING, "a compiled kernel is not cached: %s", wlm_error_detail());
  wlmi_clear_error();
}

/* *origin: where the image is from. WLM_ERR_NOT_FOUND if there is none, because the kernels were unloaded. */
static wlm_status load(wlm_context *context, wlmi_kernel_entry *entry, wlmi_loaded *loaded, wlmi_origin *origin) {
  wlm_status status = WLM_OK;
  void *image = NULL;
  size_t size = 0;
  pthread_mutex_lock(&context->kernel_lock);
  *origin = entry->origin;
  if (!is_compiled(entry)) {
    status = WLM_ERR_NOT_FOUND;
  } else if (!entry->loaded) {
    status = context->device->ops->load(context->device, &loaded->program, entry->image, entry->size, entry->kernels,
                                        &entry->module);
    entry->loaded = status == WLM_OK;
    context->loaded += entry->loaded;
  }
  if (status == WLM_OK) {
    size = entry->size;
    image = entry->image;
    entry->image = NULL;
    atomic_fetch_add(&entry->users, 1);
    loaded->users = &entry->users;
    memcpy(loaded->kernels, entry->kernels, sizeof entry->kernels);
  }
  pthread_mutex_unlock(&context->kernel_lock);
  if (image && *origin == WLMI_ORIGIN_COMPILER) cache_image(context, entry->key, image, size);
  wlmi_free(image);
  return status;
}

/* ---- by variant and spec ------------------------------------------------------------------------------ */

/* What is emitted of a problem: a variant, or a helper, whose `variant` is zeroed. */
typedef struct form {
  wlmi_variant variant;
  uint8_t helper;    /* a wlmi_helper */
  uint8_t any_width; /* in the form that serves any number of columns, as an archive has it */
} form;

/* A form for a spec, and their key. */
typedef struct sought {
  form form;
  const wlmi_spec *spec;
  wlmi_hash key;
} sought;

static sought seek(form form, const wlmi_spec *spec) {
  const wlmi_hash parts[] = {wlmi_spec_id(spec), wlmi_hash_bytes(&form, sizeof form)};
  return (sought){form, spec, wlmi_hash_bytes(parts, sizeof parts)};
}

/* What there is of an emitted variant. */
enum { COMPILED = 1, LOADED = 2 };

/* *entry as in wlmi_emitted. */
static wlmi_emitted *find_emitted(wlm_context *context, const wlmi_hash *key, wlmi_kernel_entry **entry, int *has) {
  pthread_mutex_lock(&context->kernel_lock);
  wlmi_emitted *e = context->emitted[key->low % WLMI_EMITTED_SLOTS];
  while (e && !wlmi_hash_equal(e->key, *key)) e = e->next;
  *entry = e ? e->entry : NULL;
  *has = (is_compiled(*entry) ? COMPILED : 0) | (*entry && (*entry)->loaded ? LOADED : 0);
  pthread_mutex_unlock(&context->kernel_lock);
  return e;
}

/* If two threads emitted the same variant, either record is valid. Kernels of the same text may be compiled already,
 * for another number of columns. */
static wlm_status keep_emitted(wlm_context *context, const wlmi_hash *key, const wlmi_program *program,
                               wlmi_emitted **out) {
  char of_text[33];
  wlmi_emitted *e = wlmi_alloc_zero(1, sizeof *e), **slot = &context->emitted[key->low % WLMI_EMITTED_SLOTS];
  if (!e) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "emitted variants");
  e->key = *key;
  e->program = *program;
  e->program.source = NULL;
  kernel_key(context, program, of_text);
  pthread_mutex_lock(&context->kernel_lock);
  e->entry = find_entry(context, of_text);
  e->next = *slot;
  *slot = e;
  pthread_mutex_unlock(&context->kernel_lock);
  *out = e;
  return WLM_OK;
}

static wlm_status emit(const wlm_context *context, const sought *s, wlmi_program *program) {
  wlmi_limits limits = context->device->info.limits;
  limits.any_width = s->form.any_width;
  return wlmi_generator_emit_program(context->generator, (wlmi_helper)s->form.helper, &s->form.variant, s->spec,
                                     &limits, program);
}

/* Emits and compiles a variant unless it is compiled. */
static wlm_status compile_once(wlm_context *context, const sought *s, wlmi_emitted **emitted,
                               wlmi_kernel_entry **entry) {
  wlmi_program program = {0};
  wlm_status status = WLM_OK;
  int has;
  *emitted = find_emitted(context, &s->key, entry, &has);
  if (has & COMPILED) return WLM_OK;
  WLM_TRY(emit(context, s, &program));
  if (!*emitted) WLM_TRY(keep_emitted(context, &s->key, &program, emitted));
  WLM_TRY(compile(context, &program, entry));
  pthread_mutex_lock(&context->kernel_lock);
  (*emitted)->entry = *entry;
  pthread_mutex_unlock(&context->kernel_lock);
done:
  wlmi_program_release(&program);
  return status;
}

wlm_status wlmi_context_compile(wlm_context *context, const char *name, const wlmi_spec *spec) {
  form w = {.helper = WLMI_HELPER_NONE};
  wlmi_emitted *emitted;
  wlmi_kernel_entry *entry;
  WLM_CHECK(wlmi_variant_parse(wlmi_generator_families(context->generator), name, &w.variant));
  const sought s = seek(w, spec);
  return compile_once(context, &s, &emitted, &entry);
}

static int is_archived(const wlm_context *context, const form *w, const wlmi_spec *spec) {
  char name[WLMI_VARIANT_NAME];
  wlmi_hash purposes[WLMI_COLUMNS_KINDS];
  wlmi_limits limits = context->device->info.limits;
  if (!context->archives.count) return 0;
  /* If the text of a variant depends on no columns, it is found in the form for any number, which more variants have.
   */
  const int kinds = limits.any_width && !w->any_width && !w->helper ? WLMI_COLUMNS_ANY : WLMI_COLUMNS_KINDS;
  limits.any_width = w->any_width;
  wlmi_variant_print(wlmi_generator_families(context->generator), &w->variant, name);
  wlmi_purposes(name, w->helper, spec, &limits, purposes);
  for (int i = 0; i < kinds; i++)
    if (wlmi_archives_serve(&context->archives, &context->device->info, purposes[i])) return 1;
  return 0;
}

/* Whether kernels can be had without compiling. Nothing is emitted for this question. */
static int is_at_hand(wlm_context *context, const sought *s) {
  wlmi_kernel_entry *entry;
  int has;
  find_emitted(context, &s->key, &entry, &has);
  return has & LOADED || is_archived(context, &s->form, s->spec);
}

/* Looks for a variant in its own form and, where only an archive has kernels, in the form for any number of columns.
 * Sets `s` to the form that is at hand, or else to its own. */
static int find_form(wlm_context *context, const wlmi_wanted *wanted, const wlmi_spec *spec, sought *s) {
  form f = {.variant = wanted->variant, .helper = (uint8_t)wanted->helper};
  *s = seek(f, spec);
  if (is_at_hand(context, s)) return 1;
  if (f.helper || !context->device->info.limits.any_width) return 0;
  f.any_width = 1;
  const sought any = seek(f, spec);
  if (!is_at_hand(context, &any)) return 0;
  *s = any;
  return 1;
}

/* Replaces an image that does not load: one from the cache, for example because another machine with another C library
 * made it, or one from the archive, for example PTX that is newer than the driver. */
static wlm_status replace(wlm_context *context, const sought *s, wlmi_kernel_entry *entry, wlmi_origin origin) {
  const int is_archived = origin == WLMI_ORIGIN_ARCHIVE;
  wlmi_program program = {0};
  void *image = NULL;
  size_t size = 0;
  wlm_status status;
  wlmi_log(WLM_LOG_WARNING, "kernel %s: %s; it is compiled again", is_archived ? "archive" : "cache",
           wlm_error_detail());
  WLM_TRY(emit(context, s, &program));
  WLM_TRY(get_image(context, &program, entry->key, is_archived ? WLMI_ORIGIN_CACHE : WLMI_ORIGIN_COMPILER, &image,
                    &size, &origin));
  pthread_mutex_lock(&context->kernel_lock);
  give_image(entry, image, size, origin);
  pthread_mutex_unlock(&context->kernel_lock);
done:
  wlmi_program_release(&program);
  return status;
}

/* The spec with the fewest columns for which the gradients by argmax have this text: their blocks are as wide as n, up
 * to 32 columns, and blocks of 32 serve any number. */
static wlmi_spec gradient_spec(const wlmi_spec *spec, int any_width) {
  wlmi_spec least = *spec;
  least.is_batched = 0, least.problem.batch = 1; /* products of a batch are launched one by one */
  least.problem.n = any_width ? 32 : 1;
  while (least.problem.n < 32 && least.problem.n < spec->problem.n) least.problem.n *= 2;
  if (least.problem.heads > 1) least.problem.heads = 2;
  return least;
}

/* The built-in kernel for a problem. */
static wlm_status find_builtin(const wlm_context *context, const wlmi_spec *spec, const wlmi_exported_kernel **kernel) {
  const wlmi_limits *limits = &context->device->info.limits;
  const int is_host = limits->target == WLMI_TARGET_HOST;
  char key[WLMI_SPEC_KEY];
  if (spec->problem.operation != WLM_SPMM || (spec->problem.transpose && spec->has_values))
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there is no %s",
                     spec->problem.transpose ? "transpose of a matrix with values" : "sddmm");
  if (spec->problem.heads > 1)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there are no heads: an edge has one value");
  if (spec->problem.epilogue.bias || spec->problem.epilogue.activation)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler there is no epilogue: a bias or an activation needs one");
  if (spec->base)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "without a compiler rowptr and colind must count from 0 (wlm_csr.base)");
  *kernel = wlmi_exported_builtin(&wlmi_exported_tables, limits, spec);
  if (*kernel) return WLM_OK;
  wlmi_spec_key(spec, key);
  return wlmi_fail(
      WLM_ERR_NO_COMPILER,
      "without %s only the kernels built into the library can run, unsampled mul.sum in f32 with colind of "
      "i32, and none is for %s; %s",
      is_host ? "a compiler" : "NVRTC", key,
      is_host ? "install a C compiler or let WARPLOOM_CC name it"
              : "install NVRTC (part of the CUDA Toolkit, pip package nvidia-cuda-nvrtc) or let "
                "WARPLOOM_NVRTC name it");
}

/* ---- either -------------------------------------------------------------------------------------------- */

static int is_builtin(const wlmi_wanted *wanted) { return !wanted->helper && !wanted->variant.family; }

/* `least` is for the spec of another number of columns. */
static const wlmi_spec *spec_of(const wlmi_wanted *wanted, wlmi_spec *least) {
  if (wanted->helper != WLMI_HELPER_GRADIENT) return wanted->spec;
  *least = gradient_spec(wanted->spec, wanted->any_width);
  return least;
}

wlm_status wlmi_context_load(wlm_context *context, const wlmi_wanted *wanted, wlmi_loaded *loaded) {
  wlmi_spec least;
  sought s;
  if (is_builtin(wanted)) {
    const wlmi_exported_kernel *kernel = NULL;
    WLM_CHECK(find_builtin(context, wanted->spec, &kernel));
    return wlmi_linked_load(context, kernel, loaded);
  }
  find_form(context, wanted, spec_of(wanted, &least), &s);
  *loaded = (wlmi_loaded){.users = NULL};
  for (;;) {
    wlmi_emitted *emitted;
    wlmi_kernel_entry *entry;
    wlmi_origin origin;
    WLM_CHECK(compile_once(context, &s, &emitted, &entry));
    loaded->program = emitted->program;
    make_room(context, entry);
    const wlm_status status = load(context, entry, loaded, &origin);
    if (status == WLM_ERR_NOT_FOUND) continue; /* another thread has unloaded it meanwhile */
    if (status == WLM_OK || status == WLM_ERR_OUT_OF_MEMORY || origin == WLMI_ORIGIN_COMPILER) return status;
    WLM_CHECK(replace(context, &s, entry, origin));
  }
}

int wlmi_context_has(wlm_context *context, const wlmi_wanted *wanted) {
  const wlmi_exported_kernel *kernel;
  wlmi_spec least;
  sought s;
  if (!is_builtin(wanted)) return find_form(context, wanted, spec_of(wanted, &least), &s);
  if (find_builtin(context, wanted->spec, &kernel) == WLM_OK) return 1;
  wlmi_clear_error();
  return 0;
}
