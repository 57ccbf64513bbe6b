/* Workspaces of one-call products: one a stream, which grows and stays. */
#ifndef WLM_RUNTIME_WORKSPACES_H
#define WLM_RUNTIME_WORKSPACES_H

#include <pthread.h>

#include "runtime/dispatch/device.h"

/* Calls of two threads on one stream take turns: between its passes a workspace is one product's alone. */
typedef struct wlmi_workspace {
  void *stream, *memory;
  size_t size;
  pthread_mutex_t turn;
  struct wlmi_workspace *next;
} wlmi_workspace;

typedef struct wlmi_workspaces {
  pthread_rwlock_t lock;
  wlmi_workspace *list;
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
void wlmi_workspace_give(wlmi_device *device, void *stream, wlmi_lent *lent);

#endif
