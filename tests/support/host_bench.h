/* A matrix on the host device, with a database in the test's folder. Include after cmocka. */
#pragma once

#include "support/folder.h"
#include "support/own.h"
#include "tuner/upload.h"

typedef struct bench {
  char database[320];
  wlm_context *context;
  wlmi_csr_host csr;
  wlmi_upload upload;
  wlm_problem problem;   /* WLM_PROBLEM_INIT with n */
  wlm_execute_args call; /* WLM_EXECUTE_ARGS_INIT */
} bench;

/* `templates` is a folder of families; NULL = the library's. */
void bench_make(bench *b, const char *templates, const char *input, int64_t n);
void bench_release(bench *b);
