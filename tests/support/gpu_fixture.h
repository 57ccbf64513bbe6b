/* A matrix on the GPU, in a context without databases and kernel cache. Include after cmocka. */
#pragma once

#include "runtime/context.h"
#include "support/gpu.h"
#include "support/own.h"
#include "tuner/upload.h"

typedef struct fixture {
  wlm_context *context;
  wlmi_device *device; /* the device of the context */
  wlmi_csr_host csr;
  wlmi_upload upload;
} fixture;

/* Uploads the matrix; skips the test without a GPU. */
void fixture_make(fixture *f, const char *matrix, wlm_index rowptr_type);
void fixture_release(fixture *f);

/* Checks every candidate for the problem: its description and its result. */
void check_candidates(fixture *f, const wlm_problem *problem);
