/* The part of CUDA's driver API and of NVRTC that this library uses: types, constants and signatures, so that it is
 * built without the CUDA Toolkit. Names and values are NVIDIA's, as the documentation of both states them; structs
 * have its layout, with the fields that are used. tests/unit/test_cuda_api.c compares them with NVIDIA's headers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef WLMI_CUDA_TYPES_OF_NVIDIA /* the test includes NVIDIA's headers instead */

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
} CUresult;

typedef enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
} CUdevice_attribute;

typedef enum {
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
} CUfunction_attribute;

typedef enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 } CUjit_option;
typedef enum { CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1 } CUdriverProcAddress_flags;
typedef int CUdriverProcAddressQueryResult;
typedef enum { CU_STREAM_NON_BLOCKING = 1 } CUstream_flags;
typedef enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 } CUevent_flags;

typedef enum {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

typedef enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 } CUstreamCaptureStatus;
typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum { CU_MEM_LOCATION_TYPE_DEVICE = 1 } CUmemLocationType;
typedef enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 } CUmemPool_attribute;

typedef struct {
  CUmemAllocationType allocType;
  int handleTypes;
  struct {
    CUmemLocationType type;
    int id;
  } location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

typedef enum { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 } CUlaunchAttributeID;

typedef struct {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  union {
    char pad[64];
    int programmaticStreamSerializationAllowed;
  } value;
} CUlaunchAttribute;

typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;

typedef enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_INVALID_OPTION = 5 } nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

#endif

/* Each entry point of the driver with the CUDA version in which this signature appeared; 12000 is CUDA 12.0. All are at
 * most 12.0, the oldest driver that is supported. */
// clang-format off
#define WLM_CUDA_FUNCTIONS(X) \
  X(cuInit, 2000, (unsigned flags)) \
  X(cuDriverGetVersion, 2020, (int *version)) \
  X(cuGetErrorName, 6000, (CUresult error, const char **text)) \
  X(cuGetErrorString, 6000, (CUresult error, const char **text)) \
  X(cuDeviceGet, 2000, (CUdevice *device, int ordinal)) \
  X(cuDeviceGetCount, 2000, (int *count)) \
  X(cuDeviceGetName, 2000, (char *name, int size, CUdevice device)) \
  X(cuDeviceGetAttribute, 2000, (int *value, CUdevice_attribute attribute, CUdevice device)) \
  X(cuDeviceTotalMem, 3020, (size_t *bytes, CUdevice device)) \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *context, CUdevice device)) \
  X(cuDevicePrimaryCtxRelease, 11000, (CUdevice device)) \
  X(cuCtxGetCurrent, 4000, (CUcontext *context)) \
  X(cuCtxPushCurrent, 4000, (CUcontext context)) \
  X(cuCtxPopCurrent, 4000, (CUcontext *context)) \
  X(cuCtxSynchronize, 2000, (void)) \
  X(cuModuleLoadDataEx, 2010, (CUmodule *module, const void *image, unsigned count, CUjit_option *options, \
                               void **values)) \
  X(cuModuleUnload, 2000, (CUmodule module)) \
  X(cuModuleGetFunction, 2000, (CUfunction *function, CUmodule module, const char *name)) \
  X(cuFuncGetAttribute, 2020, (int *value, CUfunction_attribute attribute, CUfunction function)) \
  X(cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int *blocks, CUfunction function, int threads, size_t shared)) \
  X(cuLaunchKernelEx, 11060, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)) \
  X(cuMemAlloc, 3020, (CUdeviceptr *memory, size_t size)) \
  X(cuMemFree, 3020, (CUdeviceptr memory)) \
  X(cuMemPoolCreate, 11020, (CUmemoryPool *pool, const CUmemPoolProps *props)) \
  X(cuMemPoolDestroy, 11020, (CUmemoryPool pool)) \
  X(cuMemPoolSetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value)) \
  X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)) \
  X(cuMemFreeAsync, 11020, (CUdeviceptr memory, CUstream stream)) \
  X(cuMemcpyHtoD, 3020, (CUdeviceptr to, const void *from, size_t size)) \
  X(cuMemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t size, CUstream stream)) \
  X(cuMemsetD8Async, 3020, (CUdeviceptr memory, unsigned char value, size_t size, CUstream stream)) \
  X(cuStreamCreate, 2000, (CUstream *stream, unsigned flags)) \
  X(cuStreamDestroy, 4000, (CUstream stream)) \
  X(cuStreamSynchronize, 2000, (CUstream stream)) \
  X(cuStreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode)) \
  X(cuStreamEndCapture, 10000, (CUstream stream, CUgraph *graph)) \
  X(cuStreamIsCapturing, 10000, (CUstream stream, CUstreamCaptureStatus *status)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *mode)) \
  X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec *executable, CUgraph graph, unsigned long long flags)) \
  X(cuGraphDestroy, 10000, (CUgraph graph)) \
  X(cuGraphExecDestroy, 10000, (CUgraphExec executable)) \
  X(cuGraphUpload, 11010, (CUgraphExec executable, CUstream stream)) \
  X(cuGraphLaunch, 10000, (CUgraphExec executable, CUstream stream)) \
  X(cuEventCreate, 2000, (CUevent *event, unsigned flags)) \
  X(cuEventDestroy, 4000, (CUevent event)) \
  X(cuEventRecord, 2000, (CUevent event, CUstream stream)) \
  X(cuEventQuery, 2000, (CUevent event)) \
  X(cuEventSynchronize, 2000, (CUevent event)) \
  X(cuEventElapsedTime, 2000, (float *milliseconds, CUevent start, CUevent stop))

/* Found by the name cuGetProcAddress_v2; it finds the others. */
#define WLMI_CUDA_GET_PROC_ADDRESS \
  (const char *name, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found)

/* Each entry point of NVRTC, with what it returns. */
#define WLM_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion, nvrtcResult, (int *major, int *minor)) \
  X(nvrtcGetNumSupportedArchs, nvrtcResult, (int *count)) \
  X(nvrtcGetSupportedArchs, nvrtcResult, (int *archs)) \
  X(nvrtcGetErrorString, const char *, (nvrtcResult result)) \
  X(nvrtcCreateProgram, nvrtcResult, (nvrtcProgram *program, const char *source, const char *name, int headers, \
                                      const char *const *texts, const char *const *names)) \
  X(nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram *program)) \
  X(nvrtcCompileProgram, nvrtcResult, (nvrtcProgram program, int count, const char *const *options)) \
  X(nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, size_t *size)) \
  X(nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char *log)) \
  X(nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, size_t *size)) \
  X(nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char *cubin)) \
  X(nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t *size)) \
  X(nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char *ptx))
// clang-format on
