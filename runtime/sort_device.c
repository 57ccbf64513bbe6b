/* Keys and positions alternate between two buffers each; the last round writes the first ones. */
#include "runtime/sort_device.h"

#include "core/csr/transpose.h"
#include "runtime/helper.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, THREADS = 512, MOST_TILES = 384, LEAST_ENTRIES = 4096 };
enum { FINISH_THREADS = 256 };
enum { COUNT, SCATTER, FINISH };

/* Of nnz entries with keys from 0 to some number of keys. */
typedef struct sort {
  int rounds;
  int64_t tiles, units; /* entries of a tile */
  size_t counts;        /* bytes, a multiple of 256 */
} sort;

/* To the alignment of the parts of a memory block. */
static size_t round_up(size_t size) { return (size + 255) / 256 * 256; }

static int rounds_for(int64_t keys) {
  int rounds = 1;
  while (rounds * DIGIT_BITS < 62 && keys - 1 >= (int64_t)1 << (rounds * DIGIT_BITS)) rounds++;
  return rounds;
}

static wlm_status make_sort(int64_t nnz, int64_t keys, sort *s) {
  int64_t units = wlmi_divide_up(nnz, MOST_TILES);
  units = units > LEAST_ENTRIES ? wlmi_divide_up(units, THREADS) * THREADS : LEAST_ENTRIES;
  if (nnz > INT64_MAX / 64 || keys > INT64_MAX / 64 || units > UINT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "sorting %lld entries by %lld keys", (long long)nnz, (long long)keys);
  *s = (sort){.rounds = rounds_for(keys), .tiles = nnz ? wlmi_divide_up(nnz, units) : 1, .units = units};
  s->counts = round_up((size_t)(DIGITS * s->tiles) * sizeof(uint32_t));
  return WLM_OK;
}

/* Enqueues all rounds. args has the template's arguments except c, arg and seed. At the end the sorted keys are in
 * keys[0] and their positions in order[0], to which args->b and args->values point. The second buffers are used only
 * with more than one round. */
static wlm_status enqueue_rounds(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const sort *s,
                                 void *const keys[2], void *const order[2], struct wlm_args *args, void *stream) {
  args->blocks = s->tiles;
  args->units = s->units;
  for (int round = 0; args->nnz && round < s->rounds; round++) {
    const int to = (s->rounds - 1 - round) % 2;
    args->c = keys[to];
    args->arg = order[to];
    args->seed = (unsigned long long)round * DIGIT_BITS;
    WLM_CHECK(wlmi_help_launch(device, kernels[COUNT], s->tiles, THREADS, 1, args, stream));
    WLM_CHECK(wlmi_help_launch(device, kernels[SCATTER], s->tiles, THREADS, 1, args, stream));
    args->b = args->c;
    args->values = args->arg;
  }
  return WLM_OK;
}

/* Enqueues the last pass with a thread for each entry and each place of rowptr. */
static wlm_status finish(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], int64_t nnz, int64_t places,
                         const struct wlm_args *args, void *stream) {
  const int64_t blocks = wlmi_divide_up(nnz > places ? nnz : places, FINISH_THREADS);
  return wlmi_help_launch(device, kernels[FINISH], blocks, FINISH_THREADS, 1, args, stream);
}

/* ---- A^T ---- */

/* The last round leaves the positions in `order` and the sorted columns in a buffer from which rowptr is computed. */

/* The parts of the scratch: counts, then columns, then positions if there is more than one round. The other buffer of
 * the columns is colind, which is written last. */
static size_t columns_size(const wlm_csr *csr) {
  return round_up((size_t)csr->nnz * wlmi_index_size(csr->colind_type));
}
static size_t order_size(const wlm_csr *csr) { return round_up((size_t)csr->nnz * wlmi_index_size(csr->rowptr_type)); }

wlm_status wlmi_transpose_layout_of(const wlm_csr *csr, wlmi_transpose_layout *layout) {
  sort s = {0};
  wlm_status status;
  WLM_TRY(wlmi_transpose_fits(csr));
  WLM_TRY(make_sort(csr->nnz, csr->cols, &s));
  layout->rowptr = 0;
  layout->colind = round_up((size_t)(csr->cols + 1) * wlmi_index_size(csr->rowptr_type));
  layout->order = layout->colind + columns_size(csr);
  layout->scratch = layout->order + order_size(csr);
  layout->size = layout->scratch + s.counts + columns_size(csr) + (s.rounds > 1 ? order_size(csr) : 0);
done:
  return status == WLM_OK ? status : wlmi_fail_in(status, "the transpose");
}

wlm_status wlmi_transpose_enqueue(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const wlm_csr *csr,
                                  void *rowptr, void *colind, void *order, void *scratch, void *stream) {
  struct wlm_args args = {.rows = csr->rows,
                          .cols = csr->cols,
                          .nnz = csr->nnz,
                          .rowptr = csr->rowptr,
                          .b = csr->colind,
                          .workspace = scratch};
  sort s = {0};
  WLM_CHECK(make_sort(csr->nnz, csr->cols, &s));
  char *const columns = (char *)scratch + s.counts;
  WLM_CHECK(enqueue_rounds(device, kernels, &s, (void *[]){columns, colind},
                           (void *[]){order, columns + columns_size(csr)}, &args, stream));
  args.c = rowptr;
  args.arg = colind;
  return finish(device, kernels, csr->nnz, csr->cols + 1, &args, stream);
}

/* ---- coordinates to CSR ---- */

/* The scratch: counts, an int for each tile, two buffers of rows and two of positions (one of each if there is one
 * round). If perm is wanted, it is the first buffer of positions. */
typedef struct layout {
  sort sort;
  size_t keys[2], order[2], size;
} layout;

static int has_sort(const wlm_coo *coo) { return coo->nnz && !coo->sorted; }

/* One more row is the key of edges that are out of range. */
static wlm_status layout_of(const wlm_coo *coo, layout *out) {
  const size_t keys = round_up((size_t)coo->nnz * wlmi_index_size(coo->index_type));
  const size_t order = round_up((size_t)coo->nnz * wlmi_index_size(coo->rowptr_type));
  WLM_CHECK(make_sort(coo->nnz, coo->rows + 1, &out->sort));
  const int twice = out->sort.rounds > 1;
  out->keys[0] = out->sort.counts + round_up((size_t)out->sort.tiles * sizeof(int));
  out->keys[1] = out->keys[0] + keys;
  out->order[1] = out->keys[1] + (twice ? keys : 0);
  out->order[0] = out->order[1] + (twice ? order : 0);
  out->size = out->order[0] + (coo->perm ? 0 : order);
  return WLM_OK;
}

wlm_status wlmi_coo_scratch_size(const wlm_coo *coo, size_t *size) {
  layout l = {.size = 0};
  const wlm_status status = has_sort(coo) ? layout_of(coo, &l) : WLM_OK;
  *size = l.size;
  return status;
}

wlm_status wlmi_coo_enqueue(const wlmi_device *device, void *const kernels[WLMI_MAX_PASSES], const wlm_coo *coo,
                            void *scratch) {
  struct wlm_args args = {
      .rows = coo->cols, .cols = coo->rows, .nnz = coo->nnz, .colind = coo->col, .b = coo->row, .workspace = scratch};
  char *const memory = scratch;
  layout l = {0};
  if (has_sort(coo)) {
    WLM_CHECK(layout_of(coo, &l));
    WLM_CHECK(enqueue_rounds(device, kernels, &l.sort, (void *[]){memory + l.keys[0], memory + l.keys[1]},
                             (void *[]){coo->perm ? coo->perm : memory + l.order[0], memory + l.order[1]}, &args,
                             coo->stream));
    args.prepared = memory + l.sort.counts;
  }
  args.a_rowptr = coo->row;
  args.c = coo->rowptr;
  args.arg = coo->colind;
  args.workspace = coo->perm;
  args.heads = (long long)wlmi_index_size(coo->colind_type);
  return finish(device, kernels, coo->nnz, coo->rows + 1, &args, coo->stream);
}
