/* Blocks of sampled mini-batches, each a matrix that is used once, and methods that multiply by them: each enqueues a
 * product, given CSR arrays on the device. */
#pragma once

#include "bench/neighbour.h"
#include "runtime/dispatch/device.h"
#include "tuner/upload.h"

/* A stream of a device for host-side timing, with the device's context current on this thread, as it is in a program
 * that uses the CUDA runtime or PyTorch. On the host device both are nothing. */
typedef struct wlmi_bench_stream {
  wlmi_device *device;
  void *handle; /* the stream to pass to calls; NULL on the host */
  int pushed;   /* the context was made current and close undoes that */
} wlmi_bench_stream;

wlm_status wlmi_bench_stream_open(wlmi_device *device, wlmi_bench_stream *stream);
/* Must be called by the thread that opened it; a zeroed one is fine. */
void wlmi_bench_stream_close(wlmi_bench_stream *stream);

/* C = A * B, or A^T * B, in f32 with 32-bit indices and values; B and C are row-major without gaps. */
typedef struct wlmi_block_product {
  const wlm_csr *a;
  int64_t n;
  int transpose;
  const float *b;
  float *c;
  void *stream;
} wlmi_block_product;

typedef struct wlmi_block_method {
  const char *name; /* "warploom", "default", "alg1", ..., "openmp" */
  int is_ours;
  /* Enqueues one product. */
  wlm_status (*multiply)(void *user, const wlmi_block_product *product);
  void (*destroy)(void *user); /* NULL = nothing to destroy */
  void *user;
} wlmi_block_method;

/* wlm_spmm of the context. */
wlmi_block_method wlmi_block_warploom(wlm_context *context);
/* A plain OpenMP loop on the host device. */
wlm_status wlmi_block_openmp(wlmi_block_method *method);
/* cuSPARSE's generic API with one of its CSR algorithms. Each product creates and destroys descriptors, because their
 * sizes cannot be changed. Its buffer only grows. The stream must outlive the method. */
enum { WLMI_CUSPARSE_ALGORITHMS = 4 };
wlm_status wlmi_block_cusparse(const wlmi_bench_stream *stream, int algorithm, wlmi_block_method *method);

void wlmi_block_method_release(wlmi_block_method *method); /* also of a zeroed one */

/* The blocks of many mini-batches of one graph, on the device. */

typedef struct wlmi_block_set {
  int layers;
  int64_t count;                /* of blocks: batches * layers */
  wlmi_upload *uploads;         /* the block of batch b and layer l is at b * layers + l; each has its own memory */
  int64_t most_rows, most_cols; /* of any block */
  struct wlmi_block_means {
    double rows, cols, nnz;
  } means[WLMI_NEIGHBOUR_LAYERS], all; /* mean sizes for each layer, and for all blocks */
} wlmi_block_set;

/* Batch b is sampled with the seed seed + b. The context must outlive the set. */
wlm_status wlmi_block_set_create(wlm_context *context, const wlmi_csr_host *graph,
                                 const wlmi_neighbour_options *options, int64_t batches, uint64_t seed,
                                 wlmi_block_set *set);
void wlmi_block_set_release(wlmi_block_set *set); /* also of a zeroed one */
