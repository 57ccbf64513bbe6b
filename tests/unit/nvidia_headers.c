/* NVIDIA's side of test_cuda_api. Signatures are compared here, when it is compiled. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <nvrtc.h>

#define WLMI_CUDA_TYPES_OF_NVIDIA
#include "runtime/cuda/api.h"
#include "unit/cuda_api_values.h"

#define ALIKE(a, b)                        _Static_assert(__builtin_types_compatible_p(a, b), "another signature")
#define DRIVER(name, version, parameters)  ALIKE(CUresult(*) parameters, PFN_##name##_v##version);
#define COMPILER(name, result, parameters) ALIKE(result(*) parameters, __typeof__(&name));

WLM_CUDA_FUNCTIONS(DRIVER)
WLM_NVRTC_FUNCTIONS(COMPILER)
ALIKE(CUresult(*) WLMI_CUDA_GET_PROC_ADDRESS, PFN_cuGetProcAddress_v12000);

const struct cuda_api_value nvidia_values[] = CUDA_API_VALUES;
const int nvidia_value_count = sizeof nvidia_values / sizeof *nvidia_values;
