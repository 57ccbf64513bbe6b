/* The system's C compiler, run without a shell in a folder that no other user can change. */
#pragma once

#include "core/base/hash.h"
#include "runtime/dispatch/device.h"

/* Describes $WARPLOOM_CC or "cc" by name, version and flags in one line of UTF-8, for keys and for people; "" if it
 * cannot be used, and then one line in the log says why. WLM_ERR_OUT_OF_MEMORY alone. */
wlm_status wlmi_host_compiler_describe(char *text, size_t capacity);

/* wlmi_file_identity of that compiler's file, for keys; "" where there is none. */
wlm_status wlmi_host_compiler_identify(char hex[WLMI_HASH_HEX]);

/* The flags that decide what a kernel computes, for a build of its source elsewhere. */
extern const char *const wlmi_host_flags;

/* C text to the bytes of a shared object (wlmi_free). WLM_ERR_COMPILE with the compiler's own message as detail.
 * WLM_ERR_NO_COMPILER if there is none, if it once took more than $WARPLOOM_CC_SECONDS (300 if not set), or if this
 * process has more rights than its caller; then none is run. */
wlm_status wlmi_host_compile(const char *source, void **image, size_t *size);
/* The same with other flags, a list of at most 32 ended by NULL. */
wlm_status wlmi_host_compile_with(const char *const *flags, const char *source, void **image, size_t *size);
