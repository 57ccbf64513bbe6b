/* Workspaces of one-call products: one for each stream, which grows and is kept, up to WLMI_WORKSPACE_KEPT bytes. A
 * call that needs more takes long enough to allocate its own, which goes with it. With more than WLMI_WORKSPACES
 * streams, the workspace that was used longest ago, and whose work has ended, is released. Its stream may have been
 * destroyed by then, so the stream is never queried: an event after each call shows that the work has ended. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/dispatch/device.h"

/* The number of idle streams that keep a workspace, and the number of workspaces from which on calls get an event. */
enum { WLMI_WORKSPACES = 32, WLMI_WORKSPACES_UNWATCHED = 16, WLMI_WORKSPACE_KEPT = 32 << 20 };

/* Calls of two threads on one stream take turns, because all passes of a product need the workspace undisturbed. */
typedef struct wlmi_workspace {
  void *stream, *memory;
  size_t size;
  pthread_mutex_t turn;    /* protects the fields above and below */
  unsigned long long used; /* the number of its last call */
  wlmi_watch *watch;       /* NULL until it is needed */
  int watched;             /* whether the last call got an event */
  struct wlmi_workspace *next;
} wlmi_workspace;

typedef struct wlmi_workspaces {
  pthread_rwlock_t lock; /* of the list and of each `stream` */
  wlmi_workspace *list;  /* only grows */
  atomic_int count;
  atomic_ullong calls;
} wlmi_workspaces;

/* Memory for what one call is about to enqueue. */
typedef struct wlmi_lent {
  wlmi_workspace *from; /* NULL = allocated for this call alone: it is large, or captured */
  void *memory;
  size_t size;
} wlmi_lent;

/* Also in a child of fork, where threads that are not there may have workspaces. */
void wlmi_workspaces_open(wlmi_workspaces *workspaces);
void wlmi_workspaces_close(wlmi_workspaces *workspaces, wlmi_device *device);
/* Takes `size` bytes for the stream. In a stream capture the memory belongs to the graph, so calls outside of it do not
 * share it. Give it back once the call is enqueued. */
wlm_status wlmi_workspace_take(wlmi_workspaces *workspaces, wlmi_device *device, void *stream, size_t size,
                               wlmi_lent *lent);
void wlmi_workspace_give(wlmi_workspaces *workspaces, wlmi_device *device, void *stream, wlmi_lent *lent);
