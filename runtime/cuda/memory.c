/* Device memory: from the allocator of the context or of the process where one is set, otherwise from the driver.
 * Memory in the order of a stream comes from a separate pool, which keeps released memory until the device is closed.
 * The device's default pool and its settings stay untouched for other libraries. */
#include "core/base/memory.h"
#include "runtime/cuda/device.h"

/* ---- the driver's ----------------------------------------------------------------------------------- */

wlm_status wlmi_cuda_pool_open(wlmi_cuda_device *cuda) {
  const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->handle}};
  cuuint64_t keep = UINT64_MAX;
  int supported;
  WLM_CUDA_SCOPE(&cuda->base);
  WLM_CHECK(WLM_CUDA(cuDeviceGetAttribute, &supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, cuda->handle));
  if (!supported) return WLM_OK;
  WLM_CHECK(WLM_CUDA(cuMemPoolCreate, &cuda->pool, &props));
  return WLM_CUDA(cuMemPoolSetAttribute, cuda->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
}

void wlmi_cuda_pool_close(wlmi_cuda_device *cuda) {
  wlmi_cuda_scope scope;
  if (!cuda->pool || wlmi_cuda_enter(&cuda->base, &scope) != WLM_OK) return;
  wlmi_cuda.cuMemPoolDestroy(cuda->pool);
  wlmi_cuda_leave(&scope);
}

/* Both calls give memory that is aligned to 256 bytes at least. */
static wlm_status driver_allocate(wlmi_device *device, CUmemoryPool pool, void *stream, size_t size, void **memory) {
  CUdeviceptr address = 0;
  *memory = NULL;
  WLM_CUDA_SCOPE(device);
  if (!size) size = 1;
  const wlm_status status =
      pool ? WLM_CUDA(cuMemAllocFromPoolAsync, &address, size, pool, stream) : WLM_CUDA(cuMemAlloc, &address, size);
  *memory = (void *)(uintptr_t)address;
  return status == WLM_OK ? status : wlmi_fail_in(status, "%zu bytes on %s", size, device->info.name);
}

/* ---- the caller's ----------------------------------------------------------------------------------- */

struct wlmi_cuda_block {
  void *memory;
  size_t size;
  wlmi_cuda_block *next;
};

/* NULL in a child of fork, where the driver's functions refuse. */
static const wlm_device_allocator *hooks_of(const wlmi_device *device) {
  if (wlmi_cuda_check_process(device) != WLM_OK) return NULL;
  return device->allocator.allocate ? &device->allocator : wlmi_device_allocator();
}

static wlm_status hook_allocate(const wlm_device_allocator *hooks, wlmi_device *device, void *stream, size_t size,
                                void **memory) {
  *memory = hooks->allocate(hooks->user, ((wlmi_cuda_device *)device)->ordinal, size ? size : 1, stream);
  if (*memory) return WLM_OK;
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%zu bytes on %s: the device allocator has no room", size, device->info.name);
}

static void hook_release(const wlm_device_allocator *hooks, wlmi_device *device, void *stream, void *memory,
                         size_t size) {
  hooks->release(hooks->user, ((wlmi_cuda_device *)device)->ordinal, memory, size ? size : 1, stream);
}

/* Any stream may use a block, so earlier work on the legacy stream with this memory must have ended. */
static wlm_status block_allocate(const wlm_device_allocator *hooks, wlmi_device *device, size_t size, void **memory) {
  wlmi_cuda_device *cuda = (wlmi_cuda_device *)device;
  wlm_status status;
  *memory = NULL;
  wlmi_cuda_block *block = wlmi_alloc(sizeof *block);
  if (!block) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "device memory");
  *block = (wlmi_cuda_block){.size = size};
  WLM_TRY(hook_allocate(hooks, device, NULL, size, &block->memory));
  WLM_TRY(wlmi_cuda_wait(device, NULL));
  *memory = block->memory;
  pthread_mutex_lock(&cuda->block_lock);
  block->next = cuda->blocks;
  cuda->blocks = block;
  pthread_mutex_unlock(&cuda->block_lock);
done:
  if (status != WLM_OK && block->memory) hook_release(hooks, device, NULL, block->memory, size);
  if (status != WLM_OK) wlmi_free(block);
  return status;
}

static wlmi_cuda_block *take_block(wlmi_cuda_device *cuda, const void *memory) {
  pthread_mutex_lock(&cuda->block_lock);
  wlmi_cuda_block **link = &cuda->blocks;
  while (*link && (*link)->memory != memory) link = &(*link)->next;
  wlmi_cuda_block *found = *link;
  if (found) *link = found->next;
  pthread_mutex_unlock(&cuda->block_lock);
  return found;
}

/* ---- the device's functions ------------------------------------------------------------------------- */

wlm_status wlmi_cuda_allocate(wlmi_device *device, size_t size, void **memory) {
  const wlm_device_allocator *hooks = hooks_of(device);
  return hooks ? block_allocate(hooks, device, size, memory) : driver_allocate(device, NULL, NULL, size, memory);
}

void wlmi_cuda_release(wlmi_device *device, void *memory) {
  const wlm_device_allocator *hooks = hooks_of(device);
  wlmi_cuda_scope scope;
  if (!memory) return;
  if (hooks) {
    wlmi_cuda_block *block = take_block((wlmi_cuda_device *)device, memory);
    wlmi_cuda_synchronize(device, NULL);
    if (block) hook_release(hooks, device, NULL, memory, block->size);
    wlmi_free(block);
  } else if (wlmi_cuda_enter(device, &scope) == WLM_OK) {
    wlmi_cuda.cuMemFree((CUdeviceptr)(uintptr_t)memory);
    wlmi_cuda_leave(&scope);
  }
}

wlm_status wlmi_cuda_allocate_on(wlmi_device *device, void *stream, size_t size, void **memory) {
  const wlm_device_allocator *hooks = hooks_of(device);
  return hooks ? hook_allocate(hooks, device, stream, size, memory)
               : driver_allocate(device, ((wlmi_cuda_device *)device)->pool, stream, size, memory);
}

/* Without a pool the memory is freed immediately, so this waits for the stream's work. */
void wlmi_cuda_release_on(wlmi_device *device, void *stream, void *memory, size_t size) {
  const wlm_device_allocator *hooks = hooks_of(device);
  const wlmi_cuda_device *cuda = (const wlmi_cuda_device *)device;
  wlmi_cuda_scope scope;
  if (!memory) return;
  if (hooks) {
    hook_release(hooks, device, stream, memory, size);
  } else if (wlmi_cuda_enter(device, &scope) == WLM_OK) {
    if (!cuda->pool) wlmi_cuda.cuStreamSynchronize(stream);
    if (cuda->pool)
      wlmi_cuda.cuMemFreeAsync((CUdeviceptr)(uintptr_t)memory, stream);
    else
      wlmi_cuda.cuMemFree((CUdeviceptr)(uintptr_t)memory);
    wlmi_cuda_leave(&scope);
  }
}
