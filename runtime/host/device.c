/* The host as a device: it runs emitted C with OpenMP, which the system's compiler compiles to a shared object that is
 * loaded from memory. Device memory is ordinary memory, and streams are ignored: every call has finished when it
 * returns. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fork.h"
#include "core/base/memory.h"
#include "runtime/devices.h"
#include "runtime/host/compiler.h"
#include "runtime/host/module.h"
#include "runtime/host/threads.h"

#define UNUSED __attribute__((unused)) /* what the host does not need of the interface */

enum { MOST_LOADED = 512 }; /* about 25 MB of code */

typedef void host_kernel(const struct wlm_args *args, long long unit_blocks, int threads);

struct wlmi_timer {
  wlm_status (*enqueue)(void *user, void *stream);
  void *user;
  int64_t calls;
};

struct wlmi_watch {
  double start, seconds;
};

static void host_close(wlmi_device *device) { wlmi_free(device); }

static wlm_status host_compile(wlmi_device *device UNUSED, const wlmi_program *program, void **image, size_t *size) {
  return wlmi_host_compile(program->source, image, size);
}

static wlm_status host_load(wlmi_device *device UNUSED, const wlmi_program *program, const void *image, size_t size,
                            void *kernels[WLMI_MAX_PASSES], wlmi_module **out) {
  wlm_status status = wlmi_host_module_open(image, size, out);
  for (int i = 0; status == WLM_OK && i < program->pass_count; i++) {
    kernels[i] = wlmi_host_module_symbol(*out, program->passes[i].kernel);
    if (!kernels[i])
      status = wlmi_fail(WLM_ERR_TEMPLATE, "%s: the template defines no kernel '%s'", program->variant,
                         program->passes[i].kernel);
  }
  if (status != WLM_OK) {
    wlmi_host_module_close(*out);
    *out = NULL;
  }
  return status;
}

static void host_unload(wlmi_device *device UNUSED, wlmi_module *module) { wlmi_host_module_close(module); }

static wlm_status host_launch(const wlmi_device *device UNUSED, const wlmi_launch *launch, const struct wlm_args *args,
                              void *stream UNUSED) {
  ((host_kernel *)launch->kernel)(args, launch->unit_blocks, wlmi_host_threads(args, launch->products));
  return WLM_OK;
}

static wlm_status host_allocate(wlmi_device *device UNUSED, size_t size, void **memory) {
  if (posix_memalign(memory, 256, size ? size : 1) == 0) return WLM_OK;
  *memory = NULL;
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%zu bytes for the host device", size);
}

static void host_release(wlmi_device *device UNUSED, void *memory) { free(memory); }

static wlm_status host_allocate_on(wlmi_device *device, void *stream UNUSED, size_t size, void **memory) {
  return host_allocate(device, size, memory);
}

static void host_release_on(wlmi_device *device, void *stream UNUSED, void *memory, size_t size UNUSED) {
  host_release(device, memory);
}

static wlm_status host_copy_in(wlmi_device *device UNUSED, void *to, const void *from, size_t size) {
  if (size) memcpy(to, from, size);
  return WLM_OK;
}

static wlm_status host_synchronize(wlmi_device *device UNUSED, void *stream UNUSED) { return WLM_OK; }

static wlm_status host_copy_out(wlmi_device *device, void *stream UNUSED, void *to, const void *from, size_t size) {
  return host_copy_in(device, to, from, size);
}

static wlm_status host_fill(wlmi_device *device UNUSED, void *stream UNUSED, void *to, int byte, size_t size) {
  if (size) memset(to, byte, size);
  return WLM_OK;
}

static wlm_status host_timer_create(wlmi_device *device UNUSED, wlm_status (*enqueue)(void *user, void *stream),
                                    void *user, int64_t calls, wlmi_timer **timer) {
  *timer = wlmi_alloc(sizeof **timer);
  if (!*timer) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "timer");
  **timer = (wlmi_timer){enqueue, user, calls};
  return WLM_OK;
}

static wlm_status host_timer_sample(wlmi_timer *timer, void *flush, size_t size, double *seconds) {
  if (flush) memset(flush, 0, size);
  double start = wlmi_seconds();
  for (int64_t i = 0; i < timer->calls; i++) {
    WLM_CHECK(timer->enqueue(timer->user, NULL));
  }
  *seconds = wlmi_seconds() - start;
  return WLM_OK;
}

static void host_usage(const wlmi_device *device UNUSED, wlmi_usage *usage) {
  struct timespec ran;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
  usage->seconds = (double)ran.tv_sec + 1e-9 * (double)ran.tv_nsec;
  usage->crowded = wlmi_crowded_seconds(wlmi_host_crowding(), wlmi_seconds());
  usage->switches = wlmi_host_switches();
}

static void host_timer_destroy(wlmi_timer *timer) { wlmi_free(timer); }

static wlm_status host_watch_create(wlmi_device *device UNUSED, wlmi_watch **watch) {
  *watch = wlmi_alloc_zero(1, sizeof **watch);
  return *watch ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "watch");
}

static wlm_status host_watch_start(wlmi_watch *watch, void *stream UNUSED) {
  watch->start = wlmi_seconds();
  return WLM_OK;
}

static wlm_status host_watch_stop(wlmi_watch *watch, void *stream UNUSED) {
  watch->seconds = wlmi_seconds() - watch->start;
  return WLM_OK;
}

static wlm_status host_watch_poll(wlmi_watch *watch, int *done, double *seconds) {
  *done = 1;
  *seconds = watch->seconds;
  return WLM_OK;
}

static void host_watch_destroy(wlmi_watch *watch) { wlmi_free(watch); }

static int host_is_captured(wlmi_device *device UNUSED, void *stream UNUSED) { return 0; }

static const wlmi_device_ops host_ops = {
    .close = host_close,
    .compile = host_compile,
    .load = host_load,
    .unload = host_unload,
    .launch = host_launch,
    .allocate = host_allocate,
    .release = host_release,
    .allocate_on = host_allocate_on,
    .release_on = host_release_on,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .fill = host_fill,
    .synchronize = host_synchronize,
    .wait = host_synchronize,
    .timer_create = host_timer_create,
    .timer_sample = host_timer_sample,
    .timer_destroy = host_timer_destroy,
    .usage = host_usage,
    .watch_create = host_watch_create,
    .watch_start = host_watch_start,
    .watch_stop = host_watch_stop,
    .watch_poll = host_watch_poll,
    .watch_destroy = host_watch_destroy,
    .is_captured = host_is_captured,
};

/* "model name : Intel(R) Xeon(R)" -> "Intel(R) Xeon(R)" */
static void cpu_name(char *name, size_t capacity) {
  char line[1024];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(name, capacity, "unknown CPU");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "model name", 10) && strncmp(line, "Model", 5)) continue;
    char *value = strchr(line, ':');
    if (!value) continue;
    value[strcspn(value, "\n")] = 0;
    snprintf(name, capacity, "%s", value + 1 + strspn(value + 1, " \t"));
    break;
  }
  if (file) fclose(file);
}

static int64_t positive(long value) { return value > 0 ? value : 0; }

wlm_status wlmi_host_device_open(wlmi_device **device) {
  struct utsname machine;
  *device = NULL;
  WLM_CHECK(wlmi_fork_check());
  wlmi_device *host = wlmi_alloc_zero(1, sizeof *host);
  *device = host;
  if (!host) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "host device");
  host->ops = &host_ops;
  wlmi_device_info *info = &host->info;
  info->kind = "host";
  cpu_name(info->name, sizeof info->name);
  snprintf(info->arch, sizeof info->arch, "%.63s", uname(&machine) == 0 ? machine.machine : "unknown");
  wlm_status status = wlmi_host_compiler_describe(info->compiler, sizeof info->compiler);
  if (status == WLM_OK) status = wlmi_host_compiler_identify(info->compiler_file);
  info->most_loaded = MOST_LOADED;
  info->limits = (wlmi_limits){.target = WLMI_TARGET_HOST, .processors = omp_get_max_threads()};
  info->memory_bytes = positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE));
  info->limits.l2_bytes = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
  if (!info->limits.l2_bytes) info->limits.l2_bytes = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
  if (status != WLM_OK) {
    host_close(host);
    *device = NULL;
  }
  return status;
}
