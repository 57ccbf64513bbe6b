/* Builds a kernel archive (runtime/archived.h): chooses kernels for common problems, as contexts choose them on
 * synthetic matrices, compiles them for several architectures, and writes them. Needs NVRTC and no GPU. */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

enum { WLMI_ARCHIVE_ARCHS = 8 };

typedef struct wlmi_archive_request {
  const char *path;                          /* the file to write */
  const char *system_database;               /* NULL = the shipped one */
  int archs[WLMI_ARCHIVE_ARCHS], arch_count; /* compute capabilities, as of wlmi_compiling_device_open */
  const char *groups;                        /* names of groups of problems, separated by commas; NULL = all */
  int only_f32;                              /* 1 = no problems of f16 and bf16 */
  int compiles_nothing;                      /* 1 = the kernels have no bytes, for tests of what is contained */
  /* Called after each kernel, one call at a time, with what was compiled for the architecture; not 0 = stop with
   * WLM_ERR_CANCELLED. May be NULL. */
  int (*progress)(void *user, int arch, int64_t done, int64_t total);
  void *user;
} wlmi_archive_request;

typedef struct wlmi_archive_summary {
  /* Of each architecture. compiled: kernels that were; PTX is also taken from the machine code of another one. */
  int64_t kernels[WLMI_ARCHIVE_ARCHS], compiled[WLMI_ARCHIVE_ARCHS], bytes[WLMI_ARCHIVE_ARCHS];
  int64_t file_bytes; /* after compression */
} wlmi_archive_summary;

/* WLM_ERR_INVALID_ARGUMENT for an unknown group or architecture; WLM_ERR_NO_COMPILER, WLM_ERR_COMPILE, WLM_ERR_IO,
 * WLM_ERR_CANCELLED, WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_archive_build(const wlmi_archive_request *request, wlmi_archive_summary *summary);
