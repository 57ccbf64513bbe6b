/* The interface of a device: a table of functions, which runtime/host/device.c and runtime/cuda/device.c fill. All
 * other code uses wlmi_device only. */
#pragma once

#include "core/base/hash.h"
#include "core/problem/program.h"
#include "templates/prelude/args.h"

typedef struct wlmi_device wlmi_device;
typedef struct wlmi_module wlmi_module; /* loaded code; each kind of device defines its own struct */
typedef struct wlmi_timer wlmi_timer;
typedef struct wlmi_watch wlmi_watch;

typedef struct wlmi_device_info {
  const char *kind;  /* "host", "cuda" */
  char name[128];    /* "NVIDIA H200", the CPU's model name */
  char arch[64];     /* "sm_90", "x86_64" */
  char bus[24];      /* the GPU's PCI address, which distinguishes equal GPUs; "" on the host */
  char driver[64];   /* of the device; "" on the host */
  char compiler[96]; /* with version and flags, "nvrtc 13.0 --std=c++17"; "" = none; stored with measurements */
  char compiler_file[WLMI_HASH_HEX]; /* wlmi_file_identity of the compiler's file, for the keys of compiled kernels */
  const char *flags; /* of the compiler besides the architecture, also where there is none; for the keys of archives */
  wlmi_limits limits;
  int64_t memory_bytes;
  int most_loaded; /* programs that stay loaded while nothing uses them; 0 = all, since a captured graph may use them */
} wlmi_device_info;

/* Where y and z of a CUDA grid end. */
enum { WLMI_GRID_FOLD = 65535 };

/* One kernel launch, known completely when a plan is bound. */
typedef struct wlmi_launch {
  void *kernel;         /* CUfunction, or a host function pointer */
  unsigned int grid[3]; /* cuda: x = fast axis, y and z = slow axis folded */
  int64_t unit_blocks;  /* host: passed to the kernel */
  int64_t products;     /* of a batch that the launch computes; 1 without one */
  unsigned int threads;
  unsigned int shared_bytes;
  int dependent;
} wlmi_launch;

/* The resources of a multiprocessor that a launch uses. */
typedef struct wlmi_kernel_facts {
  int registers;        /* per thread */
  int64_t local_bytes;  /* per thread: local memory, for what did not fit into registers */
  int64_t shared_bytes; /* per block, including dynamic shared memory */
  int blocks;           /* blocks that fit on a multiprocessor; 0 = the kernel cannot run */
} wlmi_kernel_facts;

/* What this program used of the machine so far. */
typedef struct wlmi_usage {
  double seconds;   /* in which the calling thread ran */
  double crowded;   /* in which it used fewer threads, because other programs wanted the cores */
  int64_t switches; /* how often a thread was interrupted for another */
} wlmi_usage;

typedef struct wlmi_device_ops {
  void (*close)(wlmi_device *device);

  /* Compiles the source to a binary for `load`. Any thread, several at once. *image is the caller's (wlmi_free).
   * WLM_ERR_NO_COMPILER; WLM_ERR_COMPILE with the compiler's message as detail. */
  wlm_status (*compile)(wlmi_device *device, const wlmi_program *program, void **image, size_t *size);
  /* kernels[i] is the kernel of program->passes[i], ready for the pass's shared bytes. */
  wlm_status (*load)(wlmi_device *device, const wlmi_program *program, const void *image, size_t size,
                     void *kernels[WLMI_MAX_PASSES], wlmi_module **module);
  void (*unload)(wlmi_device *device, wlmi_module *module);

  wlm_status (*launch)(const wlmi_device *device, const wlmi_launch *launch, const struct wlm_args *args, void *stream);

  /* NULL if the device has no such limits. */
  wlm_status (*kernel_facts)(const wlmi_device *device, const wlmi_launch *launch, wlmi_kernel_facts *facts);

  /* Memory that any stream may use immediately, aligned to 256 bytes. Both functions may wait for all work on the
   * device. */
  wlm_status (*allocate)(wlmi_device *device, size_t size, void **memory);
  void (*release)(wlmi_device *device, void *memory);
  /* The same in the order of a stream, without waiting: the memory is for work that is enqueued on the stream
   * afterwards, and after release_on with the same stream and size the stream's later work may get it again. */
  wlm_status (*allocate_on)(wlmi_device *device, void *stream, size_t size, void **memory);
  void (*release_on)(wlmi_device *device, void *stream, void *memory, size_t size);
  /* Blocking. */
  wlm_status (*copy_in)(wlmi_device *device, void *to, const void *from_host, size_t size);
  wlm_status (*synchronize)(wlmi_device *device, void *stream); /* NULL = everything */
  /* These run in the order of a stream and wait for no other stream; NULL is the legacy default stream. copy_out
   * returns when the bytes have arrived, fill immediately, wait when the stream's work has ended. */
  wlm_status (*copy_out)(wlmi_device *device, void *stream, void *to_host, const void *from, size_t size);
  wlm_status (*fill)(wlmi_device *device, void *stream, void *to, int byte, size_t size);
  wlm_status (*wait)(wlmi_device *device, void *stream);

  /* A timer replays `calls` consecutive calls of enqueue(user, stream): one captured CUDA graph on a GPU,
   * a plain loop on the host. */
  wlm_status (*timer_create)(wlmi_device *device, wlm_status (*enqueue)(void *user, void *stream), void *user,
                             int64_t calls, wlmi_timer **timer);
  /* The seconds that one replay took, all calls together. With cold caches if `flush` is not NULL: its `size` bytes,
   * which nothing else uses, are overwritten right before the replay. */
  wlm_status (*timer_sample)(wlmi_timer *timer, void *flush, size_t size, double *seconds);
  void (*timer_destroy)(wlmi_timer *timer);
  /* NULL where other programs on the machine hardly change times. */
  void (*usage)(const wlmi_device *device, wlmi_usage *usage);

  /* A watch times the work that is enqueued on a stream between start and stop, without waiting: poll reports whether
   * the device has finished it, and then the seconds. Starting it again discards the previous time. Neither start nor
   * stop nor poll allocates. Not on a stream that is being captured. */
  wlm_status (*watch_create)(wlmi_device *device, wlmi_watch **watch);
  wlm_status (*watch_start)(wlmi_watch *watch, void *stream);
  wlm_status (*watch_stop)(wlmi_watch *watch, void *stream);
  wlm_status (*watch_poll)(wlmi_watch *watch, int *done, double *seconds);
  void (*watch_destroy)(wlmi_watch *watch);
  /* 1 if the stream is being captured into a graph, and also if that cannot be determined. */
  int (*is_captured)(wlmi_device *device, void *stream);
} wlmi_device_ops;

/* The first member of every device. */
struct wlmi_device {
  const wlmi_device_ops *ops;
  wlmi_device_info info;
  wlm_device_allocator allocator; /* the context's own; without functions: the process-wide one */
};
