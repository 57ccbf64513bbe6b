#include "runtime/coo_device.h"

#include "runtime/sort_device.h"

/* The scratch: counts, an int for each tile, two buffers of rows and two of positions (one of each if there is one
 * round). If perm is wanted, it is the first buffer of positions. */
typedef struct layout {
  wlmi_sort sort;
  size_t keys[2], order[2], size;
} layout;

static int has_sort(const wlm_coo *coo) { return coo->nnz && !coo->sorted; }

/* One more row is the key of edges that are out of range. */
static wlm_status layout_of(const wlm_coo *coo, layout *out) {
  const size_t keys = wlmi_sort_round_up((size_t)coo->nnz * wlmi_index_size(coo->index_type));
  const size_t order = wlmi_sort_round_up((size_t)coo->nnz * wlmi_index_size(coo->rowptr_type));
  WLM_CHECK(wlmi_sort_make(coo->nnz, coo->rows + 1, &out->sort));
  const int twice = out->sort.rounds > 1;
  out->keys[0] = out->sort.counts + wlmi_sort_round_up((size_t)out->sort.tiles * sizeof(int));
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

wlm_status wlmi_coo_enqueue(const wlmi_device *device, void *const kernels[WLM_MAX_PASSES], const wlm_coo *coo,
                            void *scratch) {
  struct wlm_args args = {
      .rows = coo->cols, .cols = coo->rows, .nnz = coo->nnz, .colind = coo->col, .b = coo->row, .workspace = scratch};
  char *const memory = scratch;
  layout l;
  if (has_sort(coo)) {
    WLM_CHECK(layout_of(coo, &l));
    WLM_CHECK(wlmi_sort_enqueue(device, kernels, &l.sort, (void *[]){memory + l.keys[0], memory + l.keys[1]},
                                (void *[]){coo->perm ? coo->perm : memory + l.order[0], memory + l.order[1]}, &args,
                                coo->stream));
    args.prepared = memory + l.sort.counts;
  }
  args.a_rowptr = coo->row;
  args.c = coo->rowptr;
  args.arg = coo->colind;
  args.workspace = coo->perm;
  args.heads = (long long)wlmi_index_size(coo->colind_type);
  return wlmi_sort_finish(device, kernels, coo->nnz > coo->rows + 1 ? coo->nnz : coo->rows + 1, &args, coo->stream);
}
