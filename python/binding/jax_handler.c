#include "jax_handler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "xla_ffi.h"

enum { MOST_ARRAYS = 32, BUCKETS = 256 };

typedef struct entry {
  int64_t key;
  int device;
  wlm_plan *plan;
  warploom_jax_call call;
  int arguments, results, offsets[MOST_ARRAYS];
  pthread_mutex_t turn; /* a plan is bound to the arrays of one call at a time */
  struct entry *next;
} entry;

/* Entries are added in front and never go, so they are found without a lock. */
static _Atomic(entry *) entries[BUCKETS];

int warploom_jax_add(int64_t key, int device, wlm_plan *plan, const warploom_jax_call *call, const int *offsets,
                     int arguments, int results) {
  entry *added = arguments + results <= MOST_ARRAYS ? calloc(1, sizeof *added) : NULL;
  if (!added) return WLM_ERR_OUT_OF_MEMORY;
  *added = (entry){.key = key,
                   .device = device,
                   .plan = plan,
                   .call = *call,
                   .arguments = arguments,
                   .results = results,
                   .turn = PTHREAD_MUTEX_INITIALIZER};
  memcpy(added->offsets, offsets, (size_t)(arguments + results) * sizeof *offsets);
  _Atomic(entry *) *bucket = &entries[(uint64_t)key % BUCKETS];
  added->next = atomic_load(bucket);
  while (!atomic_compare_exchange_weak(bucket, &added->next, added))
    ;
  return WLM_OK;
}

static entry *find(int64_t key, int device) {
  entry *e = atomic_load(&entries[(uint64_t)key % BUCKETS]);
  while (e && (e->key != key || e->device != device)) e = e->next;
  return e;
}

static xla_error *fail(const xla_frame *frame, int code, const char *message) {
  xla_error_args args = {XLA_SIZE(xla_error_args, code), NULL, message, code};
  return frame->api->error_create(&args);
}

/* Says what the handler is when it is registered; the runtime refuses a version that it does not have. It drops minor
 * versions after a year, so an interface of which all later versions will do gets its own. */
static xla_error *describe(const xla_api *api, uint32_t traits, xla_metadata *metadata) {
  const int is_known = api && api->version.major == XLA_MAJOR && api->version.minor >= XLA_OLDEST_MINOR;
  metadata->version.major = XLA_MAJOR;
  metadata->version.minor = is_known ? api->version.minor : XLA_OLDEST_MINOR;
  metadata->traits = traits;
  return NULL;
}

/* Writes the addresses of the call's arrays to where the library reads them. */
static void place(const xla_buffers *from, const int *offsets, warploom_jax_call *call) {
  for (int64_t i = 0; i < from->count; i++)
    memcpy((char *)call + offsets[i], &from->buffers[i]->data, sizeof from->buffers[i]->data);
}

static xla_error *run(const xla_frame *frame, entry *e, void *stream) {
  warploom_jax_call call = e->call;
  place(&frame->arguments, e->offsets, &call);
  place(&frame->results, e->offsets + e->arguments, &call);
  call.args.stream = stream;
  call.args.operands = &call.message;
  call.args.attention = &call.attention;
  pthread_mutex_lock(&e->turn);
  wlm_status status = wlm_plan_rebind(e->plan, &call.csr);
  if (status == WLM_OK) status = wlm_plan_execute(e->plan, &call.args);
  pthread_mutex_unlock(&e->turn);
  if (status == WLM_OK) return NULL;
  return fail(frame, status == WLM_ERR_INVALID_ARGUMENT ? XLA_ERROR_INVALID_ARGUMENT : XLA_ERROR_INTERNAL,
              wlm_error_detail());
}

static xla_error *handle(const xla_frame *frame, int is_gpu) {
  const xla_api *api = frame->api;
  for (xla_extension *x = frame->extension; x; x = x->next)
    if (x->type == XLA_EXTENSION_METADATA) return describe(api, is_gpu ? XLA_MAY_BE_RECORDED : 0, x->metadata);
  const xla_attributes *given = &frame->attributes;
  const xla_scalar *key = given->count == 1 && given->kinds[0] == XLA_ATTRIBUTE_SCALAR ? given->values[0] : NULL;
  xla_stream_args stream = {sizeof stream, NULL, frame->context, NULL};
  xla_ordinal_args device = {XLA_SIZE(xla_ordinal_args, ordinal), NULL, frame->context, -1};
  if (is_gpu) {
    xla_error *error = api->stream_get(&stream);
    if (!error) error = api->ordinal_get(&device);
    if (error) return error;
  }
  entry *e = key && key->type == XLA_TYPE_S64 ? find(*(const int64_t *)key->value, device.ordinal) : NULL;
  if (!e)
    return fail(frame, XLA_ERROR_FAILED_PRECONDITION,
                "warploom.jax: this process made no plan for the call; compile the function here, too");
  if (frame->arguments.count != e->arguments || frame->results.count != e->results)
    return fail(frame, XLA_ERROR_INVALID_ARGUMENT, "warploom.jax: the plan of the call has another number of arrays");
  return run(frame, e, stream.stream);
}

static xla_error *on_host(xla_frame *frame) { return handle(frame, 0); }
static xla_error *on_gpu(xla_frame *frame) { return handle(frame, 1); }

void *warploom_jax_handler(int is_gpu) { return (void *)(is_gpu ? on_gpu : on_host); }
