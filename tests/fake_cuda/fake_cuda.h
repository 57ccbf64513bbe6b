/* A CUDA driver in host memory, for tests of the cuda device without a GPU. It is built as libcuda.so.1 and counts
 * how the library uses it. Kernels compute nothing. */
#pragma once

#include "templates/prelude/args.h"

typedef struct fake_cuda {
  /* Set by the test: properties of the fake driver and GPU. */
  int version, devices;
  int arch;             /* the compute capability, 90 for sm_90 */
  int processors;       /* 0 = 1,024 */
  const char *name;     /* NULL = "Fake GPU" */
  int l2_bytes;         /* 0 = 1,024 */
  int no_functions;     /* cuGetProcAddress finds nothing */
  int init_result;      /* the result of cuInit */
  int busy;             /* events are not complete */
  int local_bytes;      /* local bytes of each thread of any kernel */
  int implicit_capture; /* a capture is active, in which the legacy stream cannot be queried */
  int no_pools;         /* the device has no memory pools */
  int any_code;         /* modules load from any image and have every kernel */
  /* Set by the driver: what was called. */
  int without_context;  /* calls without a current context that need one */
  int retained, pushed; /* primary contexts, contexts on the calling threads' stacks */
  int memories, modules, streams, events, graphs, graph_execs; /* created and not yet released */
  int pools, pooled;   /* created and not yet released; `pooled` counts allocations from pools */
  int kept;            /* the last pool keeps released memory */
  int allocations;     /* calls that allocate or release memory, with and without pools */
  int waits, all_wait; /* calls that wait: for a stream or an event; for the whole device */
  void *waited;        /* the stream of the last wait */
  void *filled;        /* the stream of the last fill or copy */
  int legacy_copies;   /* copies to the host in the order of the legacy stream */
  int overlaps, early; /* the last launch might start early; all launches that might */
  int launches;        /* launched kernels, including replayed ones */
  int functions_loaded;
  int loaded_arch;  /* architecture of the last module loaded from PTX; 0 if it was none */
  int shared_limit; /* the last limit set for dynamic shared memory */
  int carveout;     /* the last carveout set for shared memory, in percent */
  unsigned int grid[3], threads, shared_bytes;
  struct wlm_args args; /* arguments of the last launch */
  void *stream;
} fake_cuda;

/* The symbol of the state in the library. */
#define FAKE_CUDA_STATE "fake_cuda_state"
/* The only kernel of a fake module, and the first bytes of its image. The driver also loads PTX and cubins, whatever
 * their contents. */
#define FAKE_CUDA_KERNEL "wlm_fake"
#define FAKE_CUDA_IMAGE  "FAKE"
