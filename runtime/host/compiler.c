#include "runtime/host/compiler.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/process.h"
#include "core/base/temporary.h"

#define FLAGS      "-std=gnu11", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-w"
#define FLAGS_TEXT "-O3 -march=native -fopenmp"

enum { MAX_FLAGS = 32 };

static const char *compiler(void) {
  const char *name = secure_getenv("WARPLOOM_CC");
  return name && *name ? name : "cc";
}

/* A temporary folder with the three files of a compilation. */
typedef struct workplace {
  wlmi_temporary temporary;
  char source[544], object[544], output[544];
} workplace;

static wlm_status workplace_open(workplace *place) {
  const wlm_status status = wlmi_temporary_open(&place->temporary);
  if (status != WLM_OK) return status;
  const char *folder = place->temporary.folder;
  snprintf(place->source, sizeof place->source, "%s/kernel.c", folder);
  snprintf(place->object, sizeof place->object, "%s/kernel.so", folder);
  snprintf(place->output, sizeof place->output, "%s/output", folder);
  return WLM_OK;
}

static void workplace_close(workplace *place) { wlmi_temporary_close(&place->temporary); }

/* With -march=native the binary depends on the CPU's features, so they are part of the description. */
static uint32_t cpu_features(void) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[8192];
  uint32_t features = 0;
  while (file && !features && fgets(line, sizeof line, file))
    if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8))
      features = (uint32_t)wlmi_hash_bytes(line, strlen(line)).low;
  if (file) fclose(file);
  return features;
}

wlm_status wlmi_host_compiler_describe(char *text, size_t capacity) {
  workplace place;
  char *version = NULL;
  size_t size;
  wlm_status status = WLM_OK;
  text[0] = 0;
  if (workplace_open(&place) != WLM_OK) return WLM_OK;
  char *const argv[] = {(char *)compiler(), "--version", NULL};
  if (wlmi_process_run(argv, -1, place.output) == 0) status = wlmi_file_read(place.output, &version, &size);
  if (version) {
    version[strcspn(version, "\n")] = 0;
    snprintf(text, capacity, "%.56s " FLAGS_TEXT " %08x", version, cpu_features());
  }
  wlmi_free(version);
  workplace_close(&place);
  return status == WLM_ERR_OUT_OF_MEMORY ? status : WLM_OK;
}

wlm_status wlmi_host_compiler_identify(char hex[WLM_HASH_HEX]) {
  wlmi_text path = {0};
  wlm_status status = WLM_OK;
  hex[0] = 0;
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
  int result = wlmi_process_run(argv, -1, place.output);
  if (result < 0) {
    status = wlmi_fail(WLM_ERR_NO_COMPILER, "'%s' cannot be run; install a C compiler or set WARPLOOM_CC", compiler());
  } else if (result > 0) {
    WLM_TRY(wlmi_file_read(place.output, &message, &message_size));
    status = blames_source(message) ? wlmi_fail(WLM_ERR_COMPILE, "%s", message)
                                    : wlmi_fail(WLM_ERR_IO, "the C compiler '%s' was stopped: %s", compiler(),
                                                *message ? message : "it printed nothing");
  } else {
    WLM_TRY(wlmi_file_read(place.object, &object, size));
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
