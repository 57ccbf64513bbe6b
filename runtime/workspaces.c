#include "runtime/workspaces.h"

#include "core/base/memory.h"

void wlmi_workspaces_open(wlmi_workspaces *w) {
  w->list = NULL;
  pthread_rwlock_init(&w->lock, NULL);
  atomic_init(&w->count, 0);
  atomic_init(&w->calls, 0);
}

/* The streams may have been destroyed, and all work has ended. */
void wlmi_workspaces_close(wlmi_workspaces *w, wlmi_device *device) {
  while (w->list) {
    wlmi_workspace *first = w->list;
    w->list = first->next;
    if (first->memory) device->ops->release_on(device, NULL, first->memory, first->size);
    if (first->watch) device->ops->watch_destroy(first->watch);
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

static int has_ended(wlmi_device *device, const wlmi_workspace *s) {
  double seconds;
  int done = 0;
  if (s->watched && device->ops->watch_poll(s->watch, &done, &seconds) != WLM_OK) wlmi_clear_error();
  return done;
}

/* Takes the turn of the least recently used workspace whose work has ended; NULL if there is none. */
static wlmi_workspace *take_idle(const wlmi_workspaces *w, wlmi_device *device) {
  wlmi_workspace *idle = NULL;
  for (wlmi_workspace *s = w->list; s; s = s->next) {
    if (pthread_mutex_trylock(&s->turn)) continue;
    const int better = (!idle || s->used < idle->used) && has_ended(device, s);
    wlmi_workspace *other = better ? idle : s;
    if (better) idle = s;
    if (other) pthread_mutex_unlock(&other->turn);
  }
  return idle;
}

static wlmi_workspace *add(wlmi_workspaces *w, wlmi_device *device, void *stream) {
  pthread_rwlock_wrlock(&w->lock);
  wlmi_workspace *s = find(w, stream);
  if (s) goto done;
  if (atomic_load(&w->count) >= WLMI_WORKSPACES && (s = take_idle(w, device))) {
    if (s->memory) device->ops->release_on(device, stream, s->memory, s->size);
    s->memory = NULL;
    s->size = 0;
    s->stream = stream;
    s->watched = 0;
    pthread_mutex_unlock(&s->turn);
  } else if ((s = wlmi_alloc_zero(1, sizeof *s))) {
    s->stream = stream;
    pthread_mutex_init(&s->turn, NULL);
    s->next = w->list;
    w->list = s;
    atomic_fetch_add(&w->count, 1);
  }
done:
  pthread_rwlock_unlock(&w->lock);
  return s;
}

/* Takes the turn of the stream's workspace. While it waits, the workspace may have been given to another stream. */
static wlmi_workspace *take_of(wlmi_workspaces *w, wlmi_device *device, void *stream) {
  for (;;) {
    pthread_rwlock_rdlock(&w->lock);
    wlmi_workspace *s = find(w, stream);
    pthread_rwlock_unlock(&w->lock);
    if (!s && !(s = add(w, device, stream))) return NULL;
    pthread_mutex_lock(&s->turn);
    if (s->stream == stream) return s;
    pthread_mutex_unlock(&s->turn);
  }
}

/* The old memory is released in the stream's order, so work that was enqueued with it ends first. */
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
  if (size > WLMI_WORKSPACE_KEPT || device->ops->is_captured(device, stream))
    return device->ops->allocate_on(device, stream, size, &lent->memory);
  wlmi_workspace *s = take_of(w, device, stream);
  if (!s) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "workspace");
  s->used = atomic_fetch_add(&w->calls, 1);
  s->watched = 0;
  const wlm_status status = s->size < size ? grow(device, s, size) : WLM_OK;
  if (status != WLM_OK) {
    pthread_mutex_unlock(&s->turn);
    return status;
  }
  *lent = (wlmi_lent){s, s->memory, s->size};
  return WLM_OK;
}

/* Records an event after a call. It costs less than a launch, and most programs have too few streams to need it. */
static void watch(wlmi_device *device, wlmi_workspace *s) {
  wlm_status status = WLM_OK;
  if (!s->watch) {
    status = device->ops->watch_create(device, &s->watch);
    if (status == WLM_OK) status = device->ops->watch_start(s->watch, s->stream);
  }
  if (status == WLM_OK) status = device->ops->watch_stop(s->watch, s->stream);
  if (status != WLM_OK) wlmi_clear_error(); /* then the workspace only stays longer */
  s->watched = status == WLM_OK;
}

void wlmi_workspace_give(wlmi_workspaces *w, wlmi_device *device, void *stream, wlmi_lent *lent) {
  if (lent->from) {
    if (atomic_load(&w->count) > WLMI_WORKSPACES_UNWATCHED) watch(device, lent->from);
    pthread_mutex_unlock(&lent->from->turn);
  } else if (lent->memory) {
    device->ops->release_on(device, stream, lent->memory, lent->size);
  }
}
