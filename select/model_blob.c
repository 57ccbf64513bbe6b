/* A model as bytes: "WLMm", version, the numbers in the order of the struct, xxh3-128 of all that. Numbers are
 * little-endian and floats are IEEE 754, so a database can be used on other machines. */
#include <endian.h>
#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "select/model.h"

enum { VERSION = 1, HASH_BYTES = 16, MOST_TREES = 4096, MOST_PLACES = 1 << 20 };
static const char magic[4] = {'W', 'L', 'M', 'm'};

/* One walk over the fields serves reading, writing, and counting bytes (data = NULL). */
typedef struct stream {
  unsigned char *data;
  size_t at, size;
  int reading, bad;
} stream;

static void bytes(stream *s, void *value, size_t size) {
  if (s->data && size > s->size - s->at) s->bad = 1;
  if (s->data && !s->bad) memcpy(s->reading ? value : s->data + s->at, s->reading ? s->data + s->at : value, size);
  s->at += s->bad ? 0 : size;
}

static void integer(stream *s, int64_t *value) {
  uint64_t raw = htole64((uint64_t)*value);
  bytes(s, &raw, sizeof raw);
  if (s->reading && !s->bad) *value = (int64_t)le64toh(raw);
}

static void small(stream *s, int *value, int64_t least, int64_t most) {
  int64_t number = *value;
  integer(s, &number);
  if (number < least || number > most)
    s->bad = 1;
  else
    *value = (int)number;
}

static void count(stream *s, int64_t *value, int64_t most) {
  integer(s, value);
  if (*value < 0 || *value > most) {
    s->bad = 1;
    *value = 0;
  }
}

static void real(stream *s, double *value) {
  int64_t number;
  memcpy(&number, value, sizeof number);
  integer(s, &number);
  memcpy(value, &number, sizeof number);
  s->bad |= !isfinite(*value);
}

/* Thresholds may be infinite; NaN is refused. */
static void single(stream *s, float *value, int may_be_infinite) {
  uint32_t raw;
  memcpy(&raw, value, sizeof raw);
  raw = htole32(raw);
  bytes(s, &raw, sizeof raw);
  raw = le32toh(raw);
  if (s->reading && !s->bad) memcpy(value, &raw, sizeof raw);
  s->bad |= isnan(*value) || (!may_be_infinite && !isfinite(*value));
}

static void text(stream *s, char *value, size_t capacity) {
  bytes(s, value, capacity);
  if (s->reading && !s->bad && !memchr(value, 0, capacity)) s->bad = 1;
}

static void tree(stream *s, wlmi_tree *t) {
  bytes(s, t->feature, sizeof t->feature);
  for (int i = 0; i < WLMI_TREE_NODES; i++) {
    s->bad |= t->feature[i] >= WLMI_FEATURES;
    single(s, &t->threshold[i], 1);
  }
  for (int i = 0; i < WLMI_TREE_LEAVES; i++) single(s, &t->leaf[i], 0);
}

static wlm_status fields(stream *s, wlmi_model *m) {
  int target = m->limits.target;
  text(s, m->problems, sizeof m->problems);
  small(s, &target, WLMI_TARGET_CUDA, WLMI_TARGET_HOST);
  m->limits.target = (wlmi_target)target;
  small(s, &m->limits.processors, 1, 1 << 20);
  integer(s, &m->limits.l2_bytes);
  integer(s, &m->made_at);
  integer(s, &m->measurements);
  real(s, &m->base);
  real(s, &m->spread);
  small(s, &m->family_count, 0, WLMI_MODEL_FAMILIES);
  count(s, &m->tree_count, MOST_TREES);
  count(s, &m->point_count, MOST_PLACES);
  if (s->reading && !s->bad) {
    WLM_CHECK(wlmi_alloc_array(m->tree_count, sizeof *m->trees, "trees of a model", (void **)&m->trees));
    WLM_CHECK(wlmi_alloc_array(m->point_count, sizeof *m->points, "points of a model", (void **)&m->points));
  }
  for (int i = 0; i < m->family_count && !s->bad; i++) {
    text(s, m->families[i], sizeof m->families[i]);
    real(s, &m->prepare[i]);
  }
  for (int64_t i = 0; i < m->tree_count && !s->bad; i++) tree(s, &m->trees[i]);
  for (int64_t i = 0; i < m->point_count && !s->bad; i++)
    for (int axis = 0; axis < WLMI_PLACE_AXES; axis++) single(s, &m->points[i].at[axis], 0);
  return WLM_OK;
}

/* The first bytes of a blob, checked before all others. */
static void preamble(stream *s, int64_t *version) {
  char mark[sizeof magic];
  memcpy(mark, magic, sizeof magic);
  bytes(s, mark, sizeof mark);
  s->bad |= memcmp(mark, magic, sizeof magic) != 0;
  integer(s, version);
}

static void seal(const unsigned char *data, size_t size, unsigned char out[HASH_BYTES]) {
  const wlmi_hash hash = wlmi_hash_bytes(data, size);
  const uint64_t parts[] = {htole64(hash.high), htole64(hash.low)};
  memcpy(out, parts, sizeof parts);
}

wlm_status wlmi_model_write(const wlmi_model *model, void **blob, size_t *size) {
  wlmi_model copy = *model; /* writing changes nothing, but the walk's pointers are not const */
  int64_t version = VERSION;
  stream s = {0};
  *blob = NULL;
  preamble(&s, &version);
  wlm_status status = fields(&s, &copy);
  if (s.bad) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "a model with an invalid number");
  if (status != WLM_OK) return status;
  *size = s.at + HASH_BYTES;
  s = (stream){.data = wlmi_alloc(*size), .size = s.at};
  if (!s.data) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a model");
  preamble(&s, &version);
  fields(&s, &copy);
  seal(s.data, s.size, s.data + s.size);
  *blob = s.data;
  return WLM_OK;
}

wlm_status wlmi_model_read(const void *blob, size_t size, wlmi_model *model) {
  unsigned char expected[HASH_BYTES];
  int64_t version = 0;
  *model = (wlmi_model){0};
  if (size < HASH_BYTES) return wlmi_fail(WLM_ERR_DATABASE, "a model of %zu bytes is damaged; train again", size);
  stream s = {.data = (unsigned char *)blob, .size = size - HASH_BYTES, .reading = 1};
  preamble(&s, &version);
  if (!s.bad && version != VERSION)
    return wlmi_fail(WLM_ERR_DATABASE_VERSION, "a model of version %lld, expected %d; train again", (long long)version,
                     VERSION);
  seal(s.data, s.size, expected);
  s.bad |= memcmp(expected, s.data + s.size, HASH_BYTES) != 0;
  wlm_status status = s.bad ? WLM_OK : fields(&s, model);
  if (status == WLM_OK && (s.bad || s.at != s.size))
    status = wlmi_fail(WLM_ERR_DATABASE, "a model of %zu bytes is damaged; train again", size);
  if (status != WLM_OK) wlmi_model_release(model);
  return status;
}
