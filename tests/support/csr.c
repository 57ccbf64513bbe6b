#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "support/csr.h"

#include "support/own.h"

void assert_csr(const wlmi_csr_host *csr) {
  assert_true(csr->rows >= 0 && csr->cols >= 0 && csr->nnz >= 0);
  assert_non_null(csr->rowptr);
  assert_int_equal(csr->rowptr[0], 0);
  assert_int_equal(csr->rowptr[csr->rows], csr->nnz);
  for (int64_t r = 0; r < csr->rows; r++)
    if (csr->rowptr[r] > csr->rowptr[r + 1]) fail_msg("rowptr falls at row %lld", (long long)r);
  for (int64_t i = 0; i < csr->nnz; i++)
    if (csr->colind[i] < 0 || csr->colind[i] >= csr->cols) fail_msg("colind[%lld] is %d", (long long)i, csr->colind[i]);
}

enum { CHUNK = 1024 };

/* Hashes int32 or float elements, 32 bits each. */
static void hash_words(wlmi_hasher *hasher, const void *data, int64_t count) {
  uint32_t chunk[CHUNK];
  for (int64_t i = 0; i < count; i += CHUNK) {
    const int64_t size = count - i < CHUNK ? count - i : CHUNK;
    memcpy(chunk, (const char *)data + i * 4, (size_t)size * 4);
    for (int64_t k = 0; k < size; k++) chunk[k] = htole32(chunk[k]);
    wlmi_hasher_add(hasher, chunk, (size_t)size * sizeof *chunk);
  }
}

wlmi_hash csr_hash(const wlmi_csr_host *csr) {
  OWNED(wlmi_hasher) *hasher = wlmi_hasher_create();
  assert_non_null(hasher);
  wlmi_hasher_add_int64(hasher, (const int64_t[]){csr->rows, csr->cols, csr->nnz}, 3);
  wlmi_hasher_add_int64(hasher, csr->rowptr, csr->rows + 1);
  hash_words(hasher, csr->colind, csr->nnz);
  if (csr->values) hash_words(hasher, csr->values, csr->nnz);
  const wlmi_hash hash = wlmi_hasher_result(hasher);
  return hash;
}
