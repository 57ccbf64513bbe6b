/* What test_cuda_api compares: constants, sizes and offsets of CUDA's API. It is compiled with the declarations of
 * runtime/cuda/api.h and with NVIDIA's headers. */
#pragma once

// clang-format off
#define CUDA_API_CONSTANTS(X) \
  X(CUDA_SUCCESS) X(CUDA_ERROR_INVALID_VALUE) X(CUDA_ERROR_OUT_OF_MEMORY) X(CUDA_ERROR_INVALID_CONTEXT) \
  X(CUDA_ERROR_INVALID_PTX) X(CUDA_ERROR_INVALID_HANDLE) X(CUDA_ERROR_NOT_FOUND) X(CUDA_ERROR_NOT_READY) \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) \
  X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) X(CU_FUNC_ATTRIBUTE_NUM_REGS) \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) \
  X(CU_JIT_ERROR_LOG_BUFFER) X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) X(CU_GET_PROC_ADDRESS_LEGACY_STREAM) \
  X(CU_STREAM_NON_BLOCKING) X(CU_EVENT_DEFAULT) X(CU_EVENT_DISABLE_TIMING) X(CU_STREAM_CAPTURE_MODE_GLOBAL) \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) X(CU_STREAM_CAPTURE_MODE_RELAXED) X(CU_STREAM_CAPTURE_STATUS_NONE) \
  X(CU_STREAM_CAPTURE_STATUS_ACTIVE) X(CU_MEM_ALLOCATION_TYPE_PINNED) X(CU_MEM_LOCATION_TYPE_DEVICE) \
  X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) X(NVRTC_SUCCESS) \
  X(NVRTC_ERROR_OUT_OF_MEMORY) X(NVRTC_ERROR_INVALID_OPTION)

#define CUDA_API_TYPES(X) \
  X(CUresult) X(CUdevice) X(CUdeviceptr) X(cuuint64_t) X(CUdevice_attribute) X(CUfunction_attribute) X(CUjit_option) \
  X(CUdriverProcAddressQueryResult) X(CUstreamCaptureMode) X(CUstreamCaptureStatus) X(CUmemPool_attribute) \
  X(nvrtcResult) X(CUmemPoolProps) X(CUlaunchAttribute) X(CUlaunchConfig)

#define CUDA_API_FIELDS(X) \
  X(CUmemPoolProps, allocType) X(CUmemPoolProps, handleTypes) X(CUmemPoolProps, location.type) \
  X(CUmemPoolProps, location.id) X(CUmemPoolProps, win32SecurityAttributes) X(CUmemPoolProps, maxSize) \
  X(CUmemPoolProps, usage) X(CUmemPoolProps, reserved) X(CUlaunchAttribute, id) X(CUlaunchAttribute, value) \
  X(CUlaunchAttribute, value.programmaticStreamSerializationAllowed) X(CUlaunchConfig, gridDimX) \
  X(CUlaunchConfig, gridDimY) X(CUlaunchConfig, gridDimZ) X(CUlaunchConfig, blockDimX) X(CUlaunchConfig, blockDimY) \
  X(CUlaunchConfig, blockDimZ) X(CUlaunchConfig, sharedMemBytes) X(CUlaunchConfig, hStream) X(CUlaunchConfig, attrs) \
  X(CUlaunchConfig, numAttrs)

#define CUDA_API_CONSTANT(name) {#name, (long long)name},
#define CUDA_API_TYPE(type) {"sizeof " #type, sizeof(type)},
#define CUDA_API_FIELD(type, field) \
  {"offset of " #type "." #field, offsetof(type, field)}, {"sizeof " #type "." #field, sizeof((type){0}.field)},

#define CUDA_API_VALUES \
  {CUDA_API_CONSTANTS(CUDA_API_CONSTANT) CUDA_API_TYPES(CUDA_API_TYPE) CUDA_API_FIELDS(CUDA_API_FIELD)}
// clang-format on

struct cuda_api_value {
  const char *name;
  long long value;
};

extern const struct cuda_api_value nvidia_values[];
extern const int nvidia_value_count;
