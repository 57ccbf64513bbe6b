#include "runtime/cuda/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "runtime/cuda/api.h"
#include "runtime/cuda/library.h"

#define NVRTC_FLAGS "--std=c++17"

static struct {
#define NVRTC_FIELD(name, result, parameters) result(*name) parameters;
  WLM_NVRTC_FUNCTIONS(NVRTC_FIELD)
#undef NVRTC_FIELD
  int major, minor;
  int archs[64], arch_count;
} nvrtc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512]; /* why there is no compiler; "" = there is one */

static wlm_status find_archs(void) {
  const int room = sizeof nvrtc.archs / sizeof *nvrtc.archs;
  if (nvrtc.nvrtcGetNumSupportedArchs(&nvrtc.arch_count) == NVRTC_SUCCESS && nvrtc.arch_count <= room &&
      nvrtc.nvrtcGetSupportedArchs(nvrtc.archs) == NVRTC_SUCCESS)
    return WLM_OK;
  return wlmi_fail(WLM_ERR_NO_COMPILER, "NVRTC does not list its architectures");
}

static wlm_status find(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
  void *library;
  WLM_CHECK(wlmi_cuda_library_open("NVRTC", "WARPLOOM_NVRTC", names, &library));
#define NVRTC_FIND(name, result, parameters) WLM_CHECK(wlmi_cuda_library_symbol(library, #name, &nvrtc.name));
  WLM_NVRTC_FUNCTIONS(NVRTC_FIND)
#undef NVRTC_FIND
  if (nvrtc.nvrtcVersion(&nvrtc.major, &nvrtc.minor) != NVRTC_SUCCESS)
    return wlmi_fail(WLM_ERR_NO_COMPILER, "NVRTC does not answer");
  return find_archs();
}

static void load(void) {
  if (find() != WLM_OK) snprintf(missing, sizeof missing, "%s", wlm_error_detail());
}

static wlm_status ready(void) {
  pthread_once(&once, load);
  return missing[0] ? wlmi_fail(WLM_ERR_NO_COMPILER, "%s", missing) : WLM_OK;
}

wlm_status wlmi_nvrtc_version(int *major, int *minor) {
  wlm_status status = ready();
  *major = nvrtc.major;
  *minor = nvrtc.minor;
  return status;
}

wlm_status wlmi_nvrtc_identify(char hex[WLMI_HASH_HEX]) {
  Dl_info loaded;
  void *address;
  hex[0] = 0;
  if (ready() != WLM_OK) {
    wlmi_clear_error();
    return WLM_OK;
  }
  memcpy(&address, &nvrtc.nvrtcVersion, sizeof address);
  return dladdr(address, &loaded) && loaded.dli_fname ? wlmi_file_identity(loaded.dli_fname, hex) : WLM_OK;
}

int wlmi_nvrtc_arch(int arch) {
  int newest = 0;
  if (ready() != WLM_OK) {
    wlmi_clear_error();
    return arch;
  }
  for (int i = 0; i < nvrtc.arch_count; i++)
    if (nvrtc.archs[i] <= arch && nvrtc.archs[i] > newest) newest = nvrtc.archs[i];
  return newest ? newest : arch;
}

const char *wlmi_nvrtc_flags(void) { return NVRTC_FLAGS; }

static wlm_status failure(nvrtcResult result, const char *what) {
  return wlmi_fail(result == NVRTC_ERROR_OUT_OF_MEMORY ? WLM_ERR_OUT_OF_MEMORY : WLM_ERR_COMPILE, "NVRTC: %s: %s", what,
                   nvrtc.nvrtcGetErrorString(result));
}

static wlm_status read_log(nvrtcProgram program, wlmi_text *log) {
  size_t size = 0;
  nvrtcResult result = nvrtc.nvrtcGetProgramLogSize(program, &size);
  if (result != NVRTC_SUCCESS) return failure(result, "log");
  char *text = wlmi_alloc(size + 1);
  if (!text) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "NVRTC: log of %zu bytes", size);
  text[0] = text[size] = 0;
  result = nvrtc.nvrtcGetProgramLog(program, text);
  if (result == NVRTC_SUCCESS) wlmi_text_puts(log, text);
  wlmi_free(text);
  return result == NVRTC_SUCCESS ? WLM_OK : failure(result, "log");
}

static wlm_status get(nvrtcProgram program, const char *name, int is_ptx, wlmi_nvrtc_code *code) {
  nvrtcResult result = (is_ptx ? nvrtc.nvrtcGetPTXSize : nvrtc.nvrtcGetCUBINSize)(program, &code->size);
  if (result != NVRTC_SUCCESS) return failure(result, name);
  WLM_CHECK(wlmi_alloc_array((int64_t)code->size, 1, "compiled kernel", &code->bytes));
  result = (is_ptx ? nvrtc.nvrtcGetPTX : nvrtc.nvrtcGetCUBIN)(program, code->bytes);
  return result == NVRTC_SUCCESS ? WLM_OK : failure(result, name);
}

static void release(wlmi_nvrtc_code *code) {
  if (code) wlmi_free(code->bytes);
  if (code) *code = (wlmi_nvrtc_code){0};
}

wlm_status wlmi_nvrtc_both(const char *source, const char *name, int arch, wlmi_nvrtc_code *cubin, wlmi_nvrtc_code *ptx,
                           wlmi_text *log) {
  const char *prefix = cubin ? "sm" : "compute";
  char architecture[64];
  snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d", prefix, arch);
  const char *flags[4] = {architecture, NVRTC_FLAGS};
  int flag_count = 2;
  wlmi_text messages = {0};
  nvrtcProgram program = NULL;
  nvrtcResult result;
  wlm_status status;
  if (cubin) *cubin = (wlmi_nvrtc_code){0};
  if (ptx) *ptx = (wlmi_nvrtc_code){0};
  WLM_TRY(ready());
  /* Without declarations of textures and of the runtime's functions: the same code in less time. */
  if (nvrtc.major >= 13) flags[flag_count++] = "--minimal";
  if (log) flags[flag_count++] = "--ptxas-options=-v";
  result = nvrtc.nvrtcCreateProgram(&program, source, name, 0, NULL, NULL);
  if (result != NVRTC_SUCCESS) WLM_TRY(failure(result, name));
  result = nvrtc.nvrtcCompileProgram(program, flag_count, flags);
  WLM_TRY(read_log(program, &messages));
  if (log) wlmi_text_append(log, messages.data, messages.size);
  if (result == NVRTC_ERROR_INVALID_OPTION) /* the architecture is the only option that varies */
    WLM_TRY(
        wlmi_fail(WLM_ERR_NO_COMPILER, "NVRTC %d.%d cannot compile for %s_%d", nvrtc.major, nvrtc.minor, prefix, arch));
  if (result != NVRTC_SUCCESS)
    WLM_TRY(
        wlmi_fail(WLM_ERR_COMPILE, "%s: %s", name, messages.size ? messages.data : nvrtc.nvrtcGetErrorString(result)));
  if (cubin) WLM_TRY(get(program, name, 0, cubin));
  if (ptx) WLM_TRY(get(program, name, 1, ptx));
done:
  if (program) nvrtc.nvrtcDestroyProgram(&program);
  wlmi_text_release(&messages);
  if (status != WLM_OK) {
    release(cubin);
    release(ptx);
  }
  return status;
}

wlm_status wlmi_nvrtc_compile(const char *source, const char *name, int arch, int is_ptx, void **image, size_t *size,
                              wlmi_text *log) {
  wlmi_nvrtc_code code;
  const wlm_status status = wlmi_nvrtc_both(source, name, arch, is_ptx ? NULL : &code, is_ptx ? &code : NULL, log);
  *image = code.bytes;
  *size = code.size;
  return status;
}
