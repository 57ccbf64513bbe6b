/* A context holds a device, the kernels that it loaded, and a snapshot of the measurements. */
#include "runtime/context.h"

#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"
#include "core/problem/structs.h"
#include "runtime/context_state.h"
#include "runtime/devices.h"

/* Makes a context usable in a child of fork. Threads of the parent may have been inside it. */
static void context_in_child(void *object) {
  wlm_context *context = object;
  pthread_mutex_init(&context->snapshot_lock, NULL); /* protects a pointer, which is always valid */
  if (wlmi_fork_free_lock(&context->kernel_lock)) {
    context->kernels = NULL;
    memset(context->emitted, 0, sizeof context->emitted);
    context->loaded = 0;
  }
  /* SQLite's connections must not cross a fork, and the parent writes what it recorded. */
  context->cache = NULL;
  context->recorder = (wlmi_recorder){.wanted = 0};
  pthread_mutex_init(&context->recorder.lock, NULL);
  wlmi_decisions_in_child(&context->decisions);
  wlmi_workspaces_open(&context->workspaces);
  wlmi_background_open(&context->background, context->background.wanted);
}

static wlm_status name_class(wlm_context *context) {
  wlmi_text class = {0};
  const wlmi_device_record device = wlmi_device_record_of(context->device);
  wlmi_device_class(&device, &class);
  return wlmi_text_take(&class, &context->device_class);
}

static wlm_status take_allocator(const wlm_device_allocator *given, wlmi_device *device) {
  if (!given) return WLM_OK;
  if (!given->allocate || !given->release)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_context_options.device_allocator.%s is NULL",
                     given->allocate ? "release" : "allocate");
  device->allocator = *given;
  return WLM_OK;
}

/* device: NULL = the one that the options name. */
static wlm_status create(wlmi_device *device, const wlm_context_options *options, wlm_context **out) {
  wlm_status status;
  wlm_context *context = wlmi_alloc_zero(1, sizeof *context);
  if (!context) {
    if (device) device->ops->close(device);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "context");
  }
  pthread_mutex_init(&context->snapshot_lock, NULL);
  pthread_mutex_init(&context->kernel_lock, NULL);
  wlmi_decisions_open(&context->decisions);
  wlmi_workspaces_open(&context->workspaces);
  wlmi_background_open(&context->background, options->compile_in_background);
  pthread_mutex_init(&context->recorder.lock, NULL);
  atomic_flag_clear(&context->told_archived);
  context->device = device;
  if (!device) WLM_TRY(wlmi_device_open(options->device, &context->device));
  WLM_TRY(name_class(context));
  WLM_TRY(take_allocator(options->device_allocator, context->device));
  WLM_TRY(wlmi_context_open_stores(context, options));
  WLM_TRY(wlmi_snapshot_create(&context->snapshot));
  WLM_TRY(wlmi_context_load_learned(context, 0, context->snapshot));
  wlmi_decisions_restart(&context->decisions, context->snapshot);
  WLM_TRY(wlmi_fork_watch_begin(&context->forks, context_in_child, context));
  *out = context;
done:
  if (status != WLM_OK) wlm_context_destroy(context);
  return status;
}

wlm_status wlm_context_create(const wlm_context_options *given, wlm_context **out) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  wlm_status status = wlmi_need("wlm_context_create", "context", out);
  if (status != WLM_OK) return status;
  *out = NULL;
  if (given) status = wlmi_struct_read(&wlmi_struct_context_options, given, &options);
  return status == WLM_OK ? wlmi_finish(create(NULL, &options, out)) : status;
}

wlm_status wlmi_context_create_on(wlmi_device *device, const wlm_context_options *options, wlm_context **out) {
  *out = NULL;
  return create(device, options, out);
}

void wlm_context_destroy(wlm_context *context) {
  if (!context) return;
  wlmi_fork_watch_end(&context->forks);
  wlmi_background_close(&context->background);
  if (context->device) {
    wlmi_workspaces_close(&context->workspaces, context->device);
    wlmi_decisions_close(&context->decisions);
    wlmi_context_release_kernels(context);
    context->device->ops->close(context->device);
  }
  wlmi_context_close_stores(context);
  wlmi_snapshot_release(context->snapshot);
  wlmi_free(context->device_class);
  pthread_mutex_destroy(&context->snapshot_lock);
  pthread_mutex_destroy(&context->kernel_lock);
  pthread_mutex_destroy(&context->recorder.lock);
  wlmi_free(context);
}

const char *wlmi_context_device_class(const wlm_context *context) { return context->device_class; }

const char *wlm_context_device_name(const wlm_context *context) { return context ? context->device->info.name : NULL; }

const char *wlm_context_device_kind(const wlm_context *context) { return context ? context->device->info.kind : NULL; }

/* An exported library has no databases and layers. */
wlm_status wlm_context_info(const wlm_context *context, char **json) {
  if (json) *json = NULL;
  WLM_CHECK(wlmi_need("wlm_context_info", "context json", context, json));
  const wlmi_device_info *info = &context->device->info;
  const char *const members[][2] = {{"device", info->name},
                                    {"kind", info->kind},
                                    {"arch", info->arch},
                                    {"driver", info->driver},
                                    {"compiler", info->compiler},
                                    {"database", context->database ? context->database : ""},
                                    {"system_database", context->system_database ? context->system_database : ""}};
  wlmi_text text = {0};
  wlmi_json_open(&text, NULL, '{');
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) wlmi_json_string(&text, members[i][0], members[i][1]);
  wlmi_json_open(&text, "layers", '[');
  for (int64_t i = 0; i < context->layers.count; i++) wlmi_json_string(&text, NULL, context->layers.list[i].path);
  wlmi_json_close(&text, ']');
  wlmi_json_close(&text, '}');
  return wlmi_finish(wlmi_text_take(&text, json));
}

wlmi_snapshot *wlmi_context_snapshot(wlm_context *context) {
  pthread_mutex_lock(&context->snapshot_lock);
  wlmi_snapshot *snapshot = wlmi_snapshot_retain(context->snapshot);
  pthread_mutex_unlock(&context->snapshot_lock);
  return snapshot;
}

void wlmi_context_install(wlm_context *context, wlmi_snapshot *snapshot) {
  pthread_mutex_lock(&context->snapshot_lock);
  wlmi_snapshot *unused = snapshot;
  if (snapshot->generation > context->snapshot->generation) {
    unused = context->snapshot;
    context->snapshot = snapshot;
    wlmi_decisions_restart(&context->decisions, snapshot);
  }
  pthread_mutex_unlock(&context->snapshot_lock);
  wlmi_snapshot_release(unused);
}

/* The generation is taken before reading, so of two concurrent refreshes the one that began to read later wins. */
wlm_status wlm_context_refresh(wlm_context *context) {
  wlmi_snapshot *fresh = NULL;
  wlm_status status;
  WLM_TRY(wlmi_need("wlm_context_refresh", "context", context));
  WLM_TRY(wlmi_snapshot_create(&fresh));
  fresh->generation = atomic_fetch_add(&context->generations, 1) + 1;
  WLM_TRY(wlmi_context_load_learned(context, 1, fresh));
  wlmi_context_install(context, fresh);
  fresh = NULL;
done:
  wlmi_snapshot_release(fresh);
  return wlmi_finish(status);
}

wlmi_device *wlmi_context_device(const wlm_context *context) { return context->device; }

const wlm_csr *wlmi_matrix_csr(const wlm_matrix *matrix) { return &matrix->csr; }

wlm_status wlmi_context_spec(const wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                             wlmi_spec *spec) {
  (void)context;
  return wlmi_spec_make(problem, &matrix->csr, spec);
}
