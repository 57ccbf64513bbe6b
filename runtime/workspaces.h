/* Workspaces of one-call products: one a stream, which grows and stays. Where more than WLM_WORKSPACES streams come,
 * the one that was used longest ago and whose work has ended is dropped. Its stream may be gone by then, so nothing is
 * asked of the stream: an event behind each call says that the work has ended. */
#ifndef WLM_RUNTIME_WORKSPACES_H
#define WLM_RUNTIME_WORKSPACES_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/dispatch/device.h"

/* Streams that keep a workspace while their work has ended, and how many there are before calls are watched. */
enum { WLM_WORKSPACES = 32, WLM_WORKSPACES_UNWATCHED = 16 };

/* Calls of two threads on one stream take turns: between its passes a workspace is one product's alone. */
typedef struct wlmi_workspace {
  void *stream, *memory;
  size_t size;
  pthread_mutex_t turn;    /* of what follows, and of the fields above */
  unsigned long long used; /* the number of its last call */
  wlmi_watch *watch;       /* NULL until it is needed */
  int watched;             /* the last call was */
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
  wlmi_workspace *from; /* NULL = allocated for this call alone, in a capture */
  void *memory;
  size_t size;
} wlmi_lent;

void wlmi_workspaces_open(wlmi_workspaces *workspaces);
void wlmi_workspaces_close(wlmi_workspaces *workspaces, wlmi_device *device);
/* `size` bytes on the stream; in a stream capture memory of the graph's own, so that nothing is shared with calls
 * outside of it. Give it back when the call is enqueued. */
wlm_status wlmi_workspace_take(wlmi_workspaces *workspaces, wlmi_device *device, void *stream, size_t size,
                               wlmi_lent *lent);
void wlmi_workspace_give(wlmi_workspaces *workspaces, wlmi_device *device, void *stream, wlmi_lent *lent);

#endif
