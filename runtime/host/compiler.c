#include "runtime/host/compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/printable.h"
#include "core/base/process.h"
#include "core/base/temporary.h"

#define FLAGS      "-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-w"
#define FLAGS_TEXT "-O3 -march=native -fopenmp"

const char *const wlmi_host_flags = "-std=gnu11 " FLAGS_TEXT " -fPIC -w";

enum { MAX_FLAGS = 32 };

static const char *compiler(void) {
  const char *name = secure_getenv("WARPLOOM_CC");
  return name && *name ? name : "cc";
}

/* How long a compiler may run, in seconds. */
static double limit(void) {
  const char *text = secure_getenv("WARPLOOM_CC_SECONDS");
  const long seconds = text ? strtol(text, NULL, 10) : 0;
  return seconds > 0 ? (double)seconds : 300;
}

/* A hash of the last compiler that took too long. It is not run again in this process: each kernel would wait as long.
 */
static _Atomic uint64_t too_slow;

static uint64_t compiler_hash(void) { return wlmi_hash_text(compiler()).low; }

static wlm_status not_again(void) {
  return wlmi_fail(WLM_ERR_NO_COMPILER,
                   "'%s' ran for more than %.0f seconds and is not run again in this process; set WARPLOOM_CC to "
                   "another compiler, or WARPLOOM_CC_SECONDS to a longer time",
                   compiler(), limit());
}

/* A temporary folder with the three files of a compilation. The compiler makes its own temporary files there, too. */
typedef struct workplace {
  wlmi_temporary temporary;
  char source[544], object[544], output[544];
} workplace;

static const char object_name[] = "kernel.so", output_name[] = "output";

static wlm_status workplace_open(workplace *place) {
  WLM_CHECK(wlmi_temporary_open(&place->temporary));
  const char *folder = place->temporary.folder;
  snprintf(place->source, sizeof place->source, "%s/kernel.c", folder);
  snprintf(place->object, sizeof place->object, "%s/%s", folder, object_name);
  snprintf(place->output, sizeof place->output, "%s/%s", folder, output_name);
  return WLM_OK;
}

static void workplace_close(workplace *place) { wlmi_temporary_close(&place->temporary); }

/* Sets *code to the exit status, or to WLMI_PROCESS_KILLED. */
static wlm_status run(const workplace *place, char *const argv[], int *code) {
  if (wlmi_process_is_privileged())
    return wlmi_fail(WLM_ERR_NO_COMPILER, "this program has more rights than its caller, so it runs no compiler");
  if (atomic_load(&too_slow) == compiler_hash()) return not_again();
  *code = wlmi_process_run(
      &(wlmi_process){.argv = argv, .output = place->output, .temporary = place->temporary.folder, .seconds = limit()});
  switch (*code) {
    case WLMI_PROCESS_NO_MEMORY: return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the environment of the C compiler");
    case WLMI_PROCESS_TOO_LONG: atomic_store(&too_slow, compiler_hash()); return not_again();
    case WLMI_PROCESS_MISSING:
      return wlmi_fail(WLM_ERR_NO_COMPILER, "'%s' cannot be run; install a C compiler or set WARPLOOM_CC", compiler());
    case WLMI_PROCESS_LOST:
      return wlmi_fail(
          WLM_ERR_IO,
          "the exit status of the C compiler '%s' was lost; let no other part of this program wait for all "
          "children with __WALL",
          compiler());
    default: return WLM_OK;
  }
}

/* With -march=native the binary depends on the CPU's features, so they are part of the description. */
static uint32_t cpu_features(void) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[8192];
  uint32_t features = 0;
  while (file && !features && fgets(line, sizeof line, file))
    if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8)) features = (uint32_t)wlmi_hash_text(line).low;
  if (file) fclose(file);
  return features;
}

/* Copies the first line, but whole characters only, so that the result is UTF-8. */
static void copy_line(const char *line, char *to, size_t capacity) {
  size_t used = 0;
  while (*line && *line != '\n') {
    const int length = wlmi_utf8_length(line), is_clean = length && (unsigned char)*line >= ' ';
    if (used + (is_clean ? (size_t)length : 1) >= capacity) break;
    if (is_clean)
      memcpy(to + used, line, (size_t)length);
    else
      to[used] = '?';
    used += is_clean ? (size_t)length : 1;
    line += length ? length : 1;
  }
  to[used] = 0;
}

static wlm_status read_version(char *line, size_t capacity) {
  char *const argv[] = {(char *)compiler(), "--version", NULL};
  workplace place;
  char *output = NULL;
  size_t size;
  int code = WLMI_PROCESS_MISSING;
  wlm_status status = workplace_open(&place);
  if (status != WLM_OK) return status;
  WLM_TRY(run(&place, argv, &code));
  if (code) WLM_TRY(wlmi_fail(WLM_ERR_NO_COMPILER, "'%s --version' fails", compiler()));
  WLM_TRY(wlmi_temporary_read(&place.temporary, output_name, &output, &size));
  copy_line(output, line, capacity);
done:
  wlmi_free(output);
  workplace_close(&place);
  return status;
}

wlm_status wlmi_host_compiler_describe(char *text, size_t capacity) {
  char line[57] = "";
  const wlm_status status = read_version(line, sizeof line);
  text[0] = 0;
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (status == WLM_OK)
    snprintf(text, capacity, "%s " FLAGS_TEXT " %08x", line, cpu_features());
  else
    wlmi_log(WLM_LOG_WARNING, "the host computes with its built-in kernel only: %s", wlm_error_detail());
  return WLM_OK;
}

wlm_status wlmi_host_compiler_identify(char hex[WLMI_HASH_HEX]) {
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  hex[0] = 0;
  if (wlmi_process_is_privileged()) return WLM_OK;
  wlmi_process_find(compiler(), &path);
  if (path.failed)
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "path of the compiler");
  else if (path.size)
    status = wlmi_file_identity(path.data, hex);
  wlmi_text_release(&path);
  return status;
}

/* Whether the compiler's messages report an error in a line of the source ("tile.h:12:3: error: ..."). Otherwise the
 * compiler was killed or the disk is full ("cc1: fatal error: ..."), and the source may compile the next time. */
static int blames_source(const char *messages) {
  static const char error[] = ": error: ";
  for (const char *at = strstr(messages, error); at; at = strstr(at + 1, error)) {
    const char *number = at;
    while (number > messages && number[-1] >= '0' && number[-1] <= '9') number--;
    if (number < at && number > messages && number[-1] == ':') return 1;
  }
  return 0;
}

wlm_status wlmi_host_compile_with(const char *const *flags, const char *source, void **image, size_t *size) {
  workplace place;
  char *message = NULL, *object = NULL;
  size_t message_size;
  int code = WLMI_PROCESS_MISSING;
  *image = NULL;
  wlm_status status = workplace_open(&place);
  if (status != WLM_OK) return status;
  WLM_TRY(wlmi_file_write(place.source, source));
  char *argv[MAX_FLAGS + 6] = {(char *)compiler()};
  int argc = 1;
  while (*flags && argc <= MAX_FLAGS) argv[argc++] = (char *)*flags++;
  argv[argc++] = "-o";
  argv[argc++] = place.object;
  argv[argc++] = place.source;
  argv[argc++] = "-lm"; /* for the functions of users' expressions; must stand behind the source */
  WLM_TRY(run(&place, argv, &code));
  if (code == WLMI_PROCESS_KILLED) {
    status = wlmi_fail(WLM_ERR_IO, "the C compiler '%s' was killed", compiler());
  } else if (code) {
    WLM_TRY(wlmi_temporary_read(&place.temporary, output_name, &message, &message_size));
    status = blames_source(message) ? wlmi_fail(WLM_ERR_COMPILE, "%s", message)
                                    : wlmi_fail(WLM_ERR_IO, "the C compiler '%s' was stopped: %s", compiler(),
                                                *message ? message : "it printed nothing");
  } else {
    WLM_TRY(wlmi_temporary_read(&place.temporary, object_name, &object, size));
    *image = object;
  }
done:
  wlmi_free(message);
  workplace_close(&place);
  return status;
}

wlm_status wlmi_host_compile(const char *source, void **image, size_t *size) {
  static const char *const flags[] = {FLAGS, NULL};
  return wlmi_host_compile_with(flags, source, image, size);
}
