#include "runtime/workspaces.h"

#include "common/memory.h"

void wlmi_workspaces_open(wlmi_workspaces *w) { pthread_rwlock_init(&w->lock, NULL); }

/* The streams may be gone already, and all work has ended. */
void wlmi_workspaces_close(wlmi_workspaces *w, wlmi_device *device) {
  while (w->list) {
    wlmi_workspace *first = w->list;
    w->list = first->next;
    if (first->memory) device->ops->release_on(device, NULL, first->memory, first->size);
    pthread_mutex_destroy(&first->turn);
    wlmi_free(first);
  }
  pthread_rwlock_destroy(&w->lock);
}

static wlmi_workspace *find(const wlmi_workspaces *w, const void *stream) {
  for (wlmi_workspace *s = w->list; s; s = s->next)
    if (s->stream == stream) return s;
  return NULL;
}

static wlmi_workspace *add(wlmi_workspaces *w, void *stream) {
  pthread_rwlock_wrlock(&w->lock);
  wlmi_workspace *s = find(w, stream);
  if (!s && (s = wlmi_alloc_zero(1, sizeof *s))) {
    s->stream = stream;
    pthread_mutex_init(&s->turn, NULL);
    s->next = w->list;
    w->list = s;
  }
  pthread_rwlock_unlock(&w->lock);
  return s;
}

/* Work that was enqueued with the old memory ends before the stream's allocator gives it to later work. */
static wlm_status grow(wlmi_device *device, wlmi_workspace *s, size_t size) {
  const size_t wanted = size + size / 4;
  if (s->memory) device->ops->release_on(device, s->stream, s->memory, s->size);
  s->memory = NULL;
  s->size = 0;
  const wlm_status status = device->ops->allocate_on(device, s->stream, wanted, &s->memory);
  if (status == WLM_OK) s->size = wanted;
  return status;
}

wlm_status wlmi_workspace_take(wlmi_workspaces *w, wlmi_device *device, void *stream, size_t size, wlmi_lent *lent) {
  *lent = (wlmi_lent){NULL, NULL, size};
  if (!size) return WLM_OK;
  if (device->ops->is_captured(device, stream)) return device->ops->allocate_on(device, stream, size, &lent->memory);
  pthread_rwlock_rdlock(&w->lock);
  wlmi_workspace *s = find(w, stream);
  pthread_rwlock_unlock(&w->lock);
  if (!s) s = add(w, stream);
  if (!s) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "workspace");
  pthread_mutex_lock(&s->turn);
  const wlm_status status = s->size < size ? grow(device, s, size) : WLM_OK;
  if (status != WLM_OK) {
    pthread_mutex_unlock(&s->turn);
    return status;
  }
  *lent = (wlmi_lent){s, s->memory, s->size};
  return WLM_OK;
}

void wlmi_workspace_give(wlmi_device *device, void *stream, wlmi_lent *lent) {
  if (lent->from)
    pthread_mutex_unlock(&lent->from->turn);
  else if (lent->memory)
    device->ops->release_on(device, stream, lent->memory, lent->size);
}
