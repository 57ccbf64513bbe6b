/* cuSPARSE's SpMM, SpMV and SDDMM as baselines for tuner/method.h: CSR and dense matrices of the operands' orders, all
 * of one type, with sums in f32 (f64 for f64). */
#pragma once

#include "tuner/method.h"

/* The ways of a product: four algorithms of SpMM, each with and without cusparseSpMM_preprocess, then two of SpMV in
 * the same manner. The one after them is SDDMM. */
enum { WLMI_CUSPARSE_SPMV = 8, WLMI_CUSPARSE_WAYS = 12, WLMI_CUSPARSE_SDDMM = WLMI_CUSPARSE_WAYS };

/* How many of the ways multiply by n columns; those of SpMV, the last, multiply by one. */
int wlmi_cusparse_ways(int64_t n);

/* Sets up one way on the operands (for the way SDDMM those of an SDDMM), with its own handle, descriptors and buffer.
 * Names are "default_nopre", "default", "alg1_nopre", ..., "spmv_alg1_nopre", ..., "sddmm".
 * Needs a cuda device; WARPLOOM_CUSPARSE may name the library's file. If cuSPARSE refuses, the failure is its reason.
 * *preprocess_seconds (may be NULL) is the time of the second preprocessing run, because the first one loads code; 0
 * without preprocessing. */
void wlmi_method_cusparse(const wlmi_operands *operands, int way, wlmi_method *method, double *preprocess_seconds);

/* Products of one pattern, in f32: their values, B and C follow each other without gaps. cuSPARSE steps through columns
 * and values at once, so colind of `a` has those of all products. */
typedef struct wlmi_cusparse_batch {
  wlm_csr a; /* of the first product */
  int64_t n;
  int count;
  const void *b;
  void *c;
} wlmi_cusparse_batch;
/* The same for the strided batch of a way of SpMM. */
void wlmi_method_cusparse_batch(wlmi_device *device, const wlmi_cusparse_batch *batch, int way, wlmi_method *method);
