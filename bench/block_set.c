#include "bench/block_set.h"

#include "core/base/memory.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void count_block(struct wlmi_block_means *means, const wlmi_csr_host *block, int64_t of) {
  means->rows += (double)block->rows / (double)of;
  means->cols += (double)block->cols / (double)of;
  means->nnz += (double)block->nnz / (double)of;
}

static wlm_status add_batch(wlm_context *context, const wlmi_neighbour_batch *batch, int64_t number, int64_t batches,
                            wlmi_block_set *set) {
  wlm_status status = WLM_OK;
  for (int layer = 0; layer < set->layers && status == WLM_OK; layer++) {
    const wlmi_csr_host *block = &batch->blocks[layer];
    set->most_rows = larger(set->most_rows, block->rows);
    set->most_cols = larger(set->most_cols, block->cols);
    count_block(&set->means[layer], block, batches);
    count_block(&set->all, block, set->count);
    status = wlmi_upload_create(context, block, WLM_I32, &set->uploads[number * set->layers + layer]);
  }
  return status;
}

wlm_status wlmi_block_set_create(wlm_context *context, const wlmi_csr_host *graph,
                                 const wlmi_neighbour_options *options, int64_t batches, uint64_t seed,
                                 wlmi_block_set *set) {
  wlmi_neighbour_sampler *sampler = NULL;
  wlm_status status;
  *set = (wlmi_block_set){.layers = options->layers, .count = batches * options->layers};
  set->uploads = wlmi_alloc_zero((size_t)set->count, sizeof *set->uploads);
  if (!set->uploads) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "blocks"));
  WLM_TRY(wlmi_neighbour_create(graph, &sampler));
  for (int64_t b = 0; b < batches; b++) {
    wlmi_neighbour_batch batch;
    WLM_TRY(wlmi_neighbour_sample(sampler, options, seed + (uint64_t)b, &batch));
    status = add_batch(context, &batch, b, batches, set);
    wlmi_neighbour_batch_release(&batch);
    if (status != WLM_OK) goto done;
  }
done:
  wlmi_neighbour_destroy(sampler);
  if (status != WLM_OK) wlmi_block_set_release(set);
  return status;
}

void wlmi_block_set_release(wlmi_block_set *set) {
  for (int64_t i = 0; set->uploads && i < set->count; i++) wlmi_upload_release(&set->uploads[i]);
  wlmi_free(set->uploads);
  *set = (wlmi_block_set){0};
}
