/* NVIDIA's libraries are opened when they are first needed, so that one binary starts on any machine. */
#pragma once

#include "core/base/status.h"

/* Tries the file that the environment variable names (and then nothing else); otherwise each of `names`, a list
 * ended by NULL: by the loader's own search, then in $CUDA_PATH/lib64, $CUDA_HOME/lib64 and /usr/local/cuda/lib64.
 * WLM_ERR_NOT_FOUND, with `what`, what was tried and the variable in the detail text. Never closed again. */
wlm_status wlmi_cuda_library_open(const char *what, const char *variable, const char *const *names, void **library);

/* *function, a function pointer of the caller's type, gets the address. WLM_ERR_NOT_FOUND names the function. */
wlm_status wlmi_cuda_library_symbol(void *library, const char *name, void *function);
