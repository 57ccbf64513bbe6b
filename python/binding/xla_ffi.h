/* The part of XLA's FFI, its binary interface for custom calls, that the handlers use.
 *
 * Structs begin with their size and only grow, and another major version would be another interface. So these
 * declarations serve every JAX from 0.8 on, whose interface is 0.1 or later. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0, XLA_OLDEST_MINOR = 1, XLA_EXTENSION_METADATA = 1, XLA_ATTRIBUTE_SCALAR = 3, XLA_TYPE_S64 = 5 };
enum { XLA_ERROR_INVALID_ARGUMENT = 3, XLA_ERROR_FAILED_PRECONDITION = 9, XLA_ERROR_INTERNAL = 13 };
enum { XLA_MAY_BE_RECORDED = 1 }; /* a trait: the handler's launches may become part of a CUDA graph */

/* The size of a struct whose last field is this one. */
#define XLA_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

typedef struct xla_error xla_error;     /* owned by the runtime once it is returned */
typedef struct xla_context xla_context; /* of one call */

typedef struct xla_version {
  size_t size;
  void *extension;
  int major, minor;
} xla_version;

typedef struct xla_metadata {
  size_t size;
  xla_version version;
  uint32_t traits;
} xla_metadata;

/* By this extension of the frame the runtime asks what a handler is. */
typedef struct xla_extension {
  size_t size;
  int type;
  struct xla_extension *next;
  xla_metadata *metadata; /* of XLA_EXTENSION_METADATA */
} xla_extension;

typedef struct xla_error_args {
  size_t size;
  void *extension;
  const char *message;
  int code;
} xla_error_args;

typedef struct xla_stream_args {
  size_t size;
  void *extension;
  xla_context *context;
  void *stream; /* set by the call */
} xla_stream_args;

typedef struct xla_ordinal_args {
  size_t size;
  void *extension;
  xla_context *context;
  int32_t ordinal; /* set by the call */
} xla_ordinal_args;

typedef struct xla_api {
  size_t size;
  void *extension;
  xla_version version;
  const void *internal;
  xla_error *(*error_create)(xla_error_args *args);
  void (*others[3])(void);
  xla_error *(*stream_get)(xla_stream_args *args);
  void (*more[12])(void);
  xla_error *(*ordinal_get)(xla_ordinal_args *args);
} xla_api;

typedef struct xla_buffer {
  size_t size;
  void *extension;
  int type;
  void *data;
  int64_t rank;
  int64_t *extents;
} xla_buffer;

typedef struct xla_buffers { /* arguments or results */
  size_t size;
  void *extension;
  int64_t count;
  const int *kinds;
  xla_buffer **buffers;
} xla_buffers;

typedef struct xla_scalar {
  int type;
  const void *value;
} xla_scalar;

typedef struct xla_attributes {
  size_t size;
  void *extension;
  int64_t count;
  const int *kinds;
  const void *names;
  void **values;
} xla_attributes;

typedef struct xla_frame {
  size_t size;
  xla_extension *extension;
  const xla_api *api;
  xla_context *context;
  int stage;
  xla_buffers arguments, results;
  xla_attributes attributes;
} xla_frame;
