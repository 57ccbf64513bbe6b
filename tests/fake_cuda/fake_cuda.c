#include "fake_cuda/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_cuda fake_cuda_state = {.version = 13000, .devices = 1, .arch = 90};
#define fake fake_cuda_state

struct CUctx_st {
  int unused;
};
struct CUstream_st {
  CUgraph capture; /* NULL = no capture */
  int broken;      /* the capture was invalidated */
};
struct CUevent_st {
  int recorded;
};
struct CUgraph_st {
  int launches;
  struct wlm_args args;
};
struct CUmemPoolHandle_st {
  int unused;
};
struct CUgraphExec_st {
  struct CUgraph_st graph;
};

static struct CUctx_st primary;
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode capture_mode; /* each thread begins in the global mode */
static const size_t total_memory = 64 << 20;

/* Threads that compile in the background call the driver, too. */
static void count(int *counter, int by) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

/* Most calls need the primary context to be current. */
static CUresult in_context(void) {
  if (depth && stack[depth - 1] == &primary) return CUDA_SUCCESS;
  count(&fake.without_context, 1);
  return CUDA_ERROR_INVALID_CONTEXT;
}
#define IN_CONTEXT()                             \
  do {                                           \
    CUresult result_ = in_context();             \
    if (result_ != CUDA_SUCCESS) return result_; \
  } while (0)

static CUresult make(void **object, size_t size, int *counter) {
  IN_CONTEXT();
  *object = calloc(1, size);
  count(counter, 1);
  return CUDA_SUCCESS;
}

static CUresult unmake(void *object, int *counter) {
  IN_CONTEXT();
  free(object);
  count(counter, -1);
  return CUDA_SUCCESS;
}

static CUresult fake_cuInit(unsigned int flags) {
  return flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)fake.init_result;
}
static CUresult fake_cuDriverGetVersion(int *version) { return *version = fake.version, CUDA_SUCCESS; }
static CUresult fake_cuGetErrorName(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
static CUresult fake_cuGetErrorString(CUresult error, const char **text) {
  (void)error;
  return *text = "as the fake driver says", CUDA_SUCCESS;
}
static CUresult fake_cuDeviceGetCount(int *count) { return *count = fake.devices, CUDA_SUCCESS; }
static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
static CUresult fake_cuDeviceGetName(char *name, int size, CUdevice device) {
  (void)device;
  strncpy(name, fake.name ? fake.name : "Fake GPU", (size_t)size);
  return CUDA_SUCCESS;
}
static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR                  ? fake.arch / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR                ? fake.arch % 10
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT && fake.processors ? fake.processors
           : attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE && fake.l2_bytes          ? fake.l2_bytes
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN       ? 227 << 10
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR    ? 228 << 10
           : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED                  ? !fake.no_pools
                                                                                      : 1024;
  return CUDA_SUCCESS;
}
static CUresult fake_cuDeviceTotalMem(size_t *size, CUdevice device) {
  (void)device;
  return *size = total_memory, CUDA_SUCCESS;
}
static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device;
  fake.retained++;
  return *context = &primary, CUDA_SUCCESS;
}
static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device) {
  (void)device;
  fake.retained--;
  return CUDA_SUCCESS;
}
static CUresult fake_cuCtxGetCurrent(CUcontext *context) {
  return *context = depth ? stack[depth - 1] : NULL, CUDA_SUCCESS;
}
static CUresult fake_cuCtxPushCurrent(CUcontext context) {
  count(&fake.pushed, 1);
  return stack[depth++] = context, CUDA_SUCCESS;
}
static CUresult fake_cuCtxPopCurrent(CUcontext *context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  count(&fake.pushed, -1);
  return *context = stack[--depth], CUDA_SUCCESS;
}
static CUresult fake_cuCtxSynchronize(void) { return fake.all_wait++, in_context(); }

static CUresult fake_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                        void **values) {
  static const char log[] = "line 3: not what a fake can read";
  fake.loaded_arch = 0;
  if (!memcmp(image, FAKE_CUDA_IMAGE, strlen(FAKE_CUDA_IMAGE)) || !memcmp(image, "\177ELF", 4))
    return make((void **)module, 1, &fake.modules);
  const char *target = strstr(image, "\n.target sm_"); /* finds the target in a PTX text */
  if (target) {
    fake.loaded_arch = atoi(target + strlen("\n.target sm_"));
    return make((void **)module, 1, &fake.modules);
  }
  if (fake.any_code) return make((void **)module, 1, &fake.modules);
  for (unsigned int i = 0; i + 1 < count; i++)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER && options[i + 1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES &&
        (size_t)values[i + 1] >= sizeof log)
      memcpy(values[i], log, sizeof log);
  return CUDA_ERROR_INVALID_PTX;
}
static CUresult fake_cuModuleUnload(CUmodule module) { return unmake(module, &fake.modules); }
static CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  IN_CONTEXT();
  *function = (CUfunction)module;
  return !fake.any_code && strcmp(name, FAKE_CUDA_KERNEL) ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
static CUresult fake_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  (void)function;
  IN_CONTEXT();
  switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return *value = 3 << 10, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return *value = 40, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return *value = fake.local_bytes, CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
/* More than 1024 threads of 40 registers each do not fit. */
static CUresult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                                 size_t shared) {
  (void)function;
  (void)shared;
  IN_CONTEXT();
  return *blocks = threads > 1024 ? 0 : 8, CUDA_SUCCESS;
}
static CUresult fake_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)function;
  IN_CONTEXT();
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    return fake.carveout = value, value >= 0 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 227 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  return fake.shared_limit = value, CUDA_SUCCESS;
}
static CUresult fake_cuFuncLoad(CUfunction function) {
  (void)function;
  IN_CONTEXT();
  count(&fake.functions_loaded, 1);
  return CUDA_SUCCESS;
}
static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra) {
  IN_CONTEXT();
  if (!function || !parameters || extra || config->blockDimX > 1024 || config->blockDimY != 1 || config->blockDimZ != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (!config->gridDimX || !config->gridDimY || !config->gridDimZ) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream = config->hStream;
  fake.stream = stream;
  fake.overlaps = config->numAttrs == 1 && config->attrs[0].value.programmaticStreamSerializationAllowed;
  fake.early += fake.overlaps;
  if (stream && stream->capture) {
    memcpy(&stream->capture->args, parameters[0], sizeof fake.args);
    return stream->capture->launches++, CUDA_SUCCESS;
  }
  memcpy(&fake.args, parameters[0], sizeof fake.args);
  memcpy(fake.grid, (unsigned int[]){config->gridDimX, config->gridDimY, config->gridDimZ}, sizeof fake.grid);
  fake.threads = config->blockDimX;
  fake.shared_bytes = config->sharedMemBytes;
  return fake.launches++, CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *memory, size_t size, int *count) {
  fake.allocations++;
  if (size > total_memory) return CUDA_ERROR_OUT_OF_MEMORY;
  void *pointer = NULL;
  CUresult result = make(&pointer, size, count);
  *memory = (CUdeviceptr)(uintptr_t)pointer;
  return result;
}
static CUresult fake_cuMemAlloc(CUdeviceptr *memory, size_t size) { return allocate(memory, size, &fake.memories); }
static CUresult fake_cuMemFree(CUdeviceptr memory) {
  fake.allocations++;
  return unmake((void *)(uintptr_t)memory, &fake.memories);
}
static CUresult fake_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  return make((void **)pool, sizeof **pool, &fake.pools);
}
static CUresult fake_cuMemPoolDestroy(CUmemoryPool pool) { return unmake(pool, &fake.pools); }
static CUresult fake_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  if (!pool || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return CUDA_ERROR_INVALID_VALUE;
  fake.kept = *(cuuint64_t *)value > total_memory;
  return in_context();
}
static CUresult fake_cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream) {
  fake.stream = stream;
  return pool ? allocate(memory, size, &fake.pooled) : CUDA_ERROR_INVALID_VALUE;
}
static CUresult fake_cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
  fake.stream = stream;
  fake.allocations++;
  return unmake((void *)(uintptr_t)memory, &fake.pooled);
}
static CUresult fake_cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
  IN_CONTEXT();
  return memcpy((void *)(uintptr_t)to, from, size), CUDA_SUCCESS;
}
static CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  IN_CONTEXT();
  fake.filled = stream;
  fake.legacy_copies += !stream;
  return memcpy(to, (void *)(uintptr_t)from, size), CUDA_SUCCESS;
}
static CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream) {
  IN_CONTEXT();
  fake.filled = stream;
  return memset((void *)(uintptr_t)to, byte, size), CUDA_SUCCESS;
}

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned int flags) {
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  return make((void **)stream, sizeof **stream, &fake.streams);
}
static CUresult fake_cuStreamDestroy(CUstream stream) { return unmake(stream, &fake.streams); }
static CUresult fake_cuStreamSynchronize(CUstream stream) {
  IN_CONTEXT();
  fake.waits++;
  fake.waited = stream;
  if (!stream || !stream->capture) return CUDA_SUCCESS;
  return stream->broken = 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
static CUresult fake_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  if (!stream || stream->capture || mode == CU_STREAM_CAPTURE_MODE_GLOBAL) return CUDA_ERROR_INVALID_VALUE;
  stream->broken = 0;
  return make((void **)&stream->capture, sizeof *stream->capture, &fake.graphs);
}
static CUresult fake_cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  CUgraph captured = stream->capture;
  stream->capture = NULL;
  *graph = captured;
  if (!stream->broken) return CUDA_SUCCESS;
  *graph = NULL;
  unmake(captured, &fake.graphs);
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  IN_CONTEXT();
  if (!stream && fake.implicit_capture) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = stream && stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult fake_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  const CUstreamCaptureMode before = capture_mode;
  capture_mode = *mode;
  return *mode = before, CUDA_SUCCESS;
}
static CUresult fake_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = make((void **)exec, sizeof **exec, &fake.graph_execs);
  if (result == CUDA_SUCCESS) (*exec)->graph = *graph;
  return result;
}
static CUresult fake_cuGraphDestroy(CUgraph graph) { return unmake(graph, &fake.graphs); }
static CUresult fake_cuGraphExecDestroy(CUgraphExec exec) { return unmake(exec, &fake.graph_execs); }
static CUresult fake_cuGraphUpload(CUgraphExec exec, CUstream stream) {
  (void)exec;
  return stream ? in_context() : CUDA_ERROR_INVALID_VALUE;
}
static CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (!stream) return CUDA_ERROR_INVALID_VALUE;
  IN_CONTEXT();
  fake.args = exec->graph.args;
  return fake.launches += exec->graph.launches, CUDA_SUCCESS;
}
static CUresult fake_cuEventCreate(CUevent *event, unsigned int flags) {
  if (flags & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_VALUE;
  return make((void **)event, sizeof **event, &fake.events);
}
static CUresult fake_cuEventDestroy(CUevent event) { return unmake(event, &fake.events); }
/* The fake accepts the legacy stream (NULL) like any other. */
static CUresult fake_cuEventRecord(CUevent event, CUstream stream) {
  (void)stream;
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  event->recorded = 1;
  return in_context();
}
static CUresult fake_cuEventQuery(CUevent event) {
  IN_CONTEXT();
  if (capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return !event || !event->recorded ? CUDA_ERROR_INVALID_HANDLE : fake.busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
static CUresult fake_cuEventSynchronize(CUevent event) {
  fake.waits++;
  return event ? in_context() : CUDA_ERROR_INVALID_VALUE;
}
static CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop) {
  (void)start, (void)stop;
  return *milliseconds = 2.5f, in_context();
}

/* Typed, so that a wrong signature does not compile. */
static const struct {
#define FIELD(name, version, parameters) CUresult(*name) parameters;
  WLM_CUDA_FUNCTIONS(FIELD)
#undef FIELD
} functions = {
#define VALUE(name, version, parameters) fake_##name,
    WLM_CUDA_FUNCTIONS(VALUE)
#undef VALUE
};

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
  (void)status;
  *function = NULL;
  if (flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM) return CUDA_ERROR_INVALID_VALUE;
  if (fake.no_functions) return CUDA_ERROR_NOT_FOUND;
#define ENTRY(name, since, parameters) \
  if (!strcmp(symbol, #name) && version == since) *function = (void *)functions.name;
  WLM_CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
  if (!strcmp(symbol, "cuFuncLoad") && version == 12040) *function = (void *)fake_cuFuncLoad;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
