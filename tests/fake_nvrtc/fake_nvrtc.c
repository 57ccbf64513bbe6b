/* A compiler for tests that run no kernel: it takes every source, and its code is for the fake driver (tests/fake_cuda)
 * with any_code = 1. While the file WLM_FAKE_NVRTC_WAITS exists, it does not end, and makes a file of that name and
 * ".begun". As NVRTC does, it sets the handlers of signals again by signal(), which forgets SA_RESETHAND. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cuda/api.h"

#define DECLARE(name, result, parameters) __attribute__((visibility("default"))) result name parameters;
WLM_NVRTC_FUNCTIONS(DECLARE)

static const int architectures[] = {80, 86, 87, 89, 90, 100, 103, 120};
static const char code[] = "code of the fake compiler";

nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  *count = sizeof architectures / sizeof *architectures;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs) {
  memcpy(archs, architectures, sizeof architectures);
  return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result) { return result == NVRTC_SUCCESS ? "success" : "failure"; }

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int headers,
                               const char *const *texts, const char *const *names) {
  (void)source, (void)name, (void)headers, (void)texts, (void)names;
  *program = (nvrtcProgram)code;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  *program = NULL;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  const char *file = getenv("WLM_FAKE_NVRTC_WAITS");
  (void)program, (void)count, (void)options;
  signal(SIGINT, signal(SIGINT, SIG_DFL));
  signal(SIGTERM, signal(SIGTERM, SIG_DFL));
  if (file && !access(file, F_OK)) {
    char begun[1024];
    snprintf(begun, sizeof begun, "%s.begun", file);
    fclose(fopen(begun, "w"));
  }
  while (file && !access(file, F_OK)) usleep(1000);
  return NVRTC_SUCCESS;
}

static nvrtcResult size_of_code(nvrtcProgram program, size_t *size) {
  (void)program;
  *size = sizeof code;
  return NVRTC_SUCCESS;
}

static nvrtcResult copy_code(nvrtcProgram program, char *to) {
  (void)program;
  memcpy(to, code, sizeof code);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) { return size_of_code(program, size); }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin) { return copy_code(program, cubin); }
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) { return size_of_code(program, size); }
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) { return copy_code(program, ptx); }

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
  (void)program;
  *size = 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  (void)program;
  *log = 0;
  return NVRTC_SUCCESS;
}
