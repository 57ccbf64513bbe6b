/* What is left of a context in a child of fork. Threads of the parent may have been inside it. */
#include <string.h>

#include "runtime/context_state.h"

void wlmi_context_in_child(void *object) {
  wlm_context *context = object;
  pthread_mutex_init(&context->snapshot_lock, NULL); /* protects a pointer, which is always valid */
  if (wlmi_fork_free_lock(&context->kernel_lock)) {
    context->kernels = NULL;
    memset(context->emitted, 0, sizeof context->emitted);
  }
  /* SQLite's connections must not cross a fork, and the parent writes what it recorded. */
  context->cache = NULL;
  context->recorder = (wlmi_recorder){.wanted = 0};
  pthread_mutex_init(&context->recorder.lock, NULL);
  wlmi_decisions_in_child(&context->decisions);
  wlmi_workspaces_open(&context->workspaces);
  wlmi_background_open(&context->background, context->background.wanted);
}
