#include "core/csr/formats.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/csr/npz.h"

typedef struct reader {
  wlmi_npz npz;
  const wlmi_size_check *check;
  char format[8]; /* "csr", "csc" or "coo" */
  int64_t shape[2];
  int64_t count;
  wlmi_entries entries;
} reader;

static wlm_status fail(const reader *r, const char *text) {
  return wlmi_fail(WLM_ERR_PARSE, "%s: %s", r->npz.path, text);
}

static wlm_status read_format(reader *r) {
  wlmi_npz_array array;
  WLM_CHECK(wlmi_npz_enter(&r->npz, "format.npy", &array));
  WLM_CHECK(wlmi_npz_text(&r->npz, &array, r->format, sizeof r->format));
  if (strcmp(r->format, "csr") && strcmp(r->format, "csc") && strcmp(r->format, "coo"))
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: format '%s' is not supported; save A.tocsr()", r->npz.path, r->format);
  return WLM_OK;
}

static wlm_status read_shape(reader *r) {
  wlmi_npz_array array;
  WLM_CHECK(wlmi_npz_enter(&r->npz, "shape.npy", &array));
  if (array.count != 2) return fail(r, "shape.npy: a matrix has two axes; reshape it");
  return wlmi_npz_int64s(&r->npz, &array, INT32_MAX, r->shape);
}

static wlm_status read_values(reader *r) {
  wlmi_npz_array array;
  WLM_CHECK(wlmi_npz_enter(&r->npz, "data.npy", &array));
  if (array.dimensions != 1) return fail(r, "data.npy: one axis is needed; save the matrix again");
  r->count = array.count;
  if (r->check) WLM_CHECK(r->check->fits(r->check->user, r->shape[0], r->shape[1], r->count));
  WLM_CHECK(wlmi_alloc_array(r->count, sizeof(float), "values", (void **)&r->entries.value));
  return wlmi_npz_floats(&r->npz, &array, r->entries.value);
}

/* `size`: rows or columns. */
static wlm_status read_indices(reader *r, const char *name, int64_t size, int32_t **out) {
  wlmi_npz_array array;
  WLM_CHECK(wlmi_npz_enter(&r->npz, name, &array));
  if (array.dimensions != 1 || array.count != r->count)
    return wlmi_fail(WLM_ERR_PARSE, "%s: %s: %lld entries for %lld values; save the matrix again", r->npz.path, name,
                     (long long)array.count, (long long)r->count);
  WLM_CHECK(wlmi_alloc_array(r->count, sizeof **out, name, (void **)out));
  return wlmi_npz_int32s(&r->npz, &array, size - 1, *out);
}

static wlm_status check_offsets(const reader *r, const int64_t *offsets, int64_t size) {
  for (int64_t i = 0; i < size; i++)
    if (offsets[i] > offsets[i + 1])
      return wlmi_fail(WLM_ERR_PARSE,
                       "%s: indptr.npy: entry %lld is less than the one before it; save the matrix again", r->npz.path,
                       (long long)i + 1);
  if (offsets[0] == 0 && offsets[size] == r->count) return WLM_OK;
  return wlmi_fail(WLM_ERR_PARSE,
                   "%s: indptr.npy: goes from %lld to %lld for %lld values; call A.prune(), then save it", r->npz.path,
                   (long long)offsets[0], (long long)offsets[size], (long long)r->count);
}

/* Reads indptr of `size` rows (columns of csc) and writes the row (the column) of each entry. */
static wlm_status expand_offsets(reader *r, int64_t size, int32_t **out) {
  wlmi_npz_array array;
  int64_t *offsets = NULL;
  wlm_status status;
  WLM_TRY(wlmi_npz_enter(&r->npz, "indptr.npy", &array));
  if (array.dimensions != 1 || array.count != size + 1)
    return wlmi_fail(WLM_ERR_PARSE, "%s: indptr.npy: %lld entries where the shape asks for %lld; save the matrix again",
                     r->npz.path, (long long)array.count, (long long)size + 1);
  WLM_TRY(wlmi_alloc_array(size + 1, sizeof *offsets, "indptr", (void **)&offsets));
  WLM_TRY(wlmi_npz_int64s(&r->npz, &array, r->count, offsets));
  WLM_TRY(check_offsets(r, offsets, size));
  WLM_TRY(wlmi_alloc_array(r->count, sizeof **out, "rows", (void **)out));
  for (int64_t i = 0; i < size; i++)
    for (int64_t p = offsets[i]; p < offsets[i + 1]; p++) (*out)[p] = (int32_t)i;
done:
  wlmi_free(offsets);
  return status;
}

static wlm_status read_coordinates(reader *r) {
  wlmi_entries *e = &r->entries;
  const int is_csc = !strcmp(r->format, "csc");
  if (!strcmp(r->format, "coo")) {
    WLM_CHECK(read_indices(r, "row.npy", r->shape[0], &e->row));
    return read_indices(r, "col.npy", r->shape[1], &e->col);
  }
  WLM_CHECK(read_indices(r, "indices.npy", r->shape[!is_csc], is_csc ? &e->row : &e->col));
  return expand_offsets(r, r->shape[is_csc], is_csc ? &e->col : &e->row);
}

static wlm_status read_matrix(reader *r, wlmi_csr_host *out) {
  wlm_status status;
  WLM_TRY(read_format(r));
  WLM_TRY(read_shape(r));
  WLM_TRY(read_values(r));
  WLM_TRY(read_coordinates(r));
  r->entries.count = r->count;
  status = wlmi_entries_to_csr(&r->entries, r->npz.path, r->shape[0], r->shape[1], out);
done:
  wlmi_entries_release(&r->entries);
  return status;
}

wlm_status wlmi_scipy_parse(wlmi_lines *lines, const wlmi_size_check *check, wlmi_csr_host *out) {
  reader r = {.check = check};
  wlmi_text text = {0};
  wlm_status status;
  *out = (wlmi_csr_host){0};
  WLM_TRY(wlmi_lines_rest(lines, &text));
  const wlmi_npz_bytes bytes = {.data = text.data, .size = text.size};
  WLM_TRY(wlmi_npz_open(lines->path, &bytes, &r.npz));
  status = read_matrix(&r, out);
done:
  wlmi_npz_close(&r.npz);
  wlmi_text_release(&text);
  return status;
}
