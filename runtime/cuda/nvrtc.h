/* NVRTC, NVIDIA's run-time compiler: source text to machine code for one architecture. Needs no GPU. */
#pragma once

#include "core/base/hash.h"
#include "core/base/text.h"

/* WLM_ERR_NO_COMPILER where NVRTC cannot be found; WARPLOOM_NVRTC may name its file. */
wlm_status wlmi_nvrtc_version(int *major, int *minor);

/* wlmi_file_identity of the library that was loaded; "" where there is none. The version alone does not distinguish an
 * update within the same minor version. */
wlm_status wlmi_nvrtc_identify(char hex[WLMI_HASH_HEX]);

/* The flags that every compilation has besides the architecture. */
const char *wlmi_nvrtc_flags(void);

/* Compiles to machine code, or with is_ptx to PTX for the virtual architecture: text ended by NUL, which *size counts.
 * `name` stands for the text in messages, where no #line says otherwise. `arch` is 90 for sm_90. The image is the
 * caller's (wlmi_free). Any thread, several at once.
 * log unless NULL, gets the compiler's messages and, for each kernel, registers, shared memory and spills
 * WLM_ERR_COMPILE with the messages as detail text; WLM_ERR_NO_COMPILER, also where this NVRTC does not know the
 * architecture. */
wlm_status wlmi_nvrtc_compile(const char *source, const char *name, int arch, int is_ptx, void **image, size_t *size,
                              wlmi_text *log);

/* The same to machine code and to the PTX that NVRTC makes on the way there. cubin or ptx may be NULL. */
typedef struct wlmi_nvrtc_code {
  void *bytes;
  size_t size;
} wlmi_nvrtc_code;
wlm_status wlmi_nvrtc_both(const char *source, const char *name, int arch, wlmi_nvrtc_code *cubin, wlmi_nvrtc_code *ptx,
                           wlmi_text *log);

/* The newest architecture that NVRTC supports and a GPU of `arch` can run: `arch` itself if NVRTC supports it. An older
 * one can only be compiled to PTX, which the GPU's driver translates. Returns `arch` if there is none, or no NVRTC. */
int wlmi_nvrtc_arch(int arch);
