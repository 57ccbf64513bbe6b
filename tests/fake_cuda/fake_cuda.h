/* A CUDA driver made of host memory, for tests of the cuda device where there is no GPU: the library libcuda.so.1
 * that stands here in the driver's place and keeps account of how it is used. Nothing is computed. */
#ifndef WLM_TESTS_FAKE_CUDA_H
#define WLM_TESTS_FAKE_CUDA_H

#include "templates/prelude/args.h"

typedef struct fake_cuda {
  /* What it pretends to be. */
  int version, devices;
  int arch;             /* its compute capability, 90 for sm_90 */
  int no_functions;     /* cuGetProcAddress finds nothing */
  int init_result;      /* of cuInit */
  int busy;             /* events have not been reached */
  int local_bytes;      /* that a thread of any kernel has */
  int implicit_capture; /* something is captured, so that the legacy stream cannot be asked */
  int no_pools;         /* the device has no memory pools */
  int any_code;         /* modules load from any image and have every kernel */
  /* What happened. */
  int without_context;  /* calls that need a current context and had none */
  int retained, pushed; /* primary contexts, contexts on the calling threads' stacks */
  int memories, modules, streams, events, graphs, graph_execs; /* made and not yet released */
  int pools, pooled;   /* made and not yet released; `pooled` are memories of pools */
  int kept;            /* the last pool keeps what is released */
  int allocations;     /* calls that give memory or take it, of pools or not */
  int waits, all_wait; /* calls that wait: for a stream or an event, for everything */
  void *waited;        /* the stream of the last wait */
  void *filled;        /* the stream of the last fill or copy */
  int overlaps;        /* the last launch might start early */
  int launches;        /* kernels run, replayed ones too */
  int functions_loaded;
  int loaded_arch;  /* of the last module loaded from PTX, 0 from anything else */
  int shared_limit; /* last dynamic shared memory asked for */
  int carveout;     /* last share of L1 asked for as shared memory, in percent */
  unsigned int grid[3], threads, shared_bytes;
  struct wlm_args args; /* of the last launch */
  void *stream;
} fake_cuda;

/* Exported by the library. */
#define FAKE_CUDA_STATE "fake_cuda_state"
/* The only kernel that a module of its has, and what its modules begin with. It loads PTX and cubins as well, whatever
 * they hold. */
#define FAKE_CUDA_KERNEL "wlm_fake"
#define FAKE_CUDA_IMAGE  "FAKE"

#endif
