#include "db/kernel_archive.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/private_file.h"

static const char magic[8] = "wlmkerns";
/* LARGEST: bytes of a kernel, which are far fewer. WINDOW: how far back LZMA looks for equal bytes, more than most
 * kernels have; its memory grows with it. */
enum { VERSION = 3, LARGEST = 64 << 20, WINDOW = 1 << 20 };

typedef struct header {
  char magic[sizeof magic];
  int64_t version, count, size;
  wlmi_hash index;
} header;

typedef struct entry {
  wlmi_hash key;
  int64_t offset, stored, size; /* stored: its size in the file */
  wlmi_hash hash;               /* of the bytes in the file */
} entry;

struct wlmi_kernel_archive {
  int fd;
  int64_t count;
  entry *entries;
  char *path;
};

/* Of keys, which entries and kernels begin with. */
static int compare_keys(const void *left, const void *right) {
  const wlmi_hash *a = left, *b = right;
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->low > b->low) - (a->low < b->low);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* WLM_ERR_DATABASE where the file ends before. */
static wlm_status read_at(int fd, const char *path, int64_t offset, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)offset + (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wlmi_fail(WLM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!got) return wlmi_fail(WLM_ERR_DATABASE, "%s: is damaged: it ends too early; build it again", path);
    done += (size_t)got;
  }
  return WLM_OK;
}

static wlm_status check_header(const header *h, const char *path, int64_t size) {
  if (memcmp(h->magic, magic, sizeof magic))
    return wlmi_fail(WLM_ERR_DATABASE, "%s: is no kernel archive; name another file", path);
  if (h->version != VERSION)
    return wlmi_fail(WLM_ERR_DATABASE_VERSION, "%s: is a kernel archive of version %lld, expected %d; build it again",
                     path, (long long)h->version, VERSION);
  if (h->size != size || h->count < 0 || h->count > (size - (int64_t)sizeof *h) / (int64_t)sizeof(entry))
    return wlmi_fail(WLM_ERR_DATABASE, "%s: is damaged: it has %lld bytes; build it again", path, (long long)size);
  return WLM_OK;
}

static wlm_status read_index(wlmi_kernel_archive *a, int64_t file_size) {
  header h;
  if (file_size < (int64_t)sizeof h)
    return wlmi_fail(WLM_ERR_DATABASE, "%s: is no kernel archive; name another file", a->path);
  WLM_CHECK(read_at(a->fd, a->path, 0, &h, sizeof h));
  WLM_CHECK(check_header(&h, a->path, file_size));
  WLM_CHECK(wlmi_alloc_array(h.count, sizeof *a->entries, "index of a kernel archive", (void **)&a->entries));
  WLM_CHECK(read_at(a->fd, a->path, sizeof h, a->entries, (size_t)h.count * sizeof *a->entries));
  int is_whole = wlmi_hash_equal(wlmi_hash_bytes(a->entries, (size_t)h.count * sizeof *a->entries), h.index);
  for (int64_t i = 0; is_whole && i < h.count; i++) {
    const entry *e = &a->entries[i];
    is_whole = e->stored >= 0 && e->stored <= e->size && e->size <= LARGEST && e->offset >= 0 &&
               e->offset <= file_size - e->stored;
  }
  if (!is_whole) return wlmi_fail(WLM_ERR_DATABASE, "%s: is damaged: its index is wrong; build it again", a->path);
  a->count = h.count;
  return WLM_OK;
}

wlm_status wlmi_kernel_archive_open(const char *path, int is_shipped, wlmi_kernel_archive **out) {
  wlmi_kernel_archive *a = wlmi_alloc_zero(1, sizeof *a);
  int64_t size = 0;
  wlm_status status;
  *out = NULL;
  if (!a) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel archive");
  a->fd = -1;
  a->path = wlmi_strdup(path);
  if (!a->path) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a kernel archive"));
  WLM_TRY(wlmi_private_open(path, is_shipped, &a->fd, &size));
  WLM_TRY(read_index(a, size));
  *out = a;
done:
  if (status != WLM_OK) wlmi_kernel_archive_close(a);
  return status;
}

void wlmi_kernel_archive_close(wlmi_kernel_archive *a) {
  if (!a) return;
  if (a->fd >= 0) close(a->fd);
  wlmi_free(a->entries);
  wlmi_free(a->path);
  wlmi_free(a);
}

int64_t wlmi_kernel_archive_count(const wlmi_kernel_archive *a) { return a ? a->count : 0; }

static const entry *find(const wlmi_kernel_archive *a, wlmi_hash key) {
  if (!wlmi_kernel_archive_count(a)) return NULL;
  return bsearch(&key, a->entries, (size_t)a->count, sizeof *a->entries, compare_keys);
}

int wlmi_kernel_archive_has(const wlmi_kernel_archive *a, wlmi_hash key) { return find(a, key) != NULL; }

static lzma_ret expand(const entry *e, const void *stored, void *to) {
  uint64_t memory = 16 * WINDOW;
  size_t from = 0, written = 0;
  if (e->stored == e->size) return memcpy(to, stored, (size_t)e->size), LZMA_OK;
  const lzma_ret result =
      lzma_stream_buffer_decode(&memory, 0, NULL, stored, &from, (size_t)e->stored, to, &written, (size_t)e->size);
  return result == LZMA_OK && written != (size_t)e->size ? LZMA_DATA_ERROR : result;
}

wlm_status wlmi_kernel_archive_get(const wlmi_kernel_archive *a, wlmi_hash key, void **data, size_t *size) {
  const entry *e = find(a, key);
  char hex[WLMI_HASH_HEX];
  void *stored = NULL;
  wlm_status status;
  *data = NULL;
  *size = 0;
  wlmi_hash_to_hex(key, hex);
  if (!e) return wlmi_fail(WLM_ERR_NOT_FOUND, "kernel %s is not in the archive", hex);
  WLM_TRY(wlmi_alloc_array(e->stored, 1, "a kernel of an archive", &stored));
  WLM_TRY(read_at(a->fd, a->path, e->offset, stored, (size_t)e->stored));
  WLM_TRY(wlmi_alloc_array(e->size, 1, "a kernel of an archive", data));
  const int is_whole = wlmi_hash_equal(wlmi_hash_bytes(stored, (size_t)e->stored), e->hash);
  const lzma_ret expanded = is_whole ? expand(e, stored, *data) : LZMA_DATA_ERROR;
  if (expanded == LZMA_MEM_ERROR) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "expanding a kernel of an archive"));
  if (expanded != LZMA_OK)
    WLM_TRY(wlmi_fail(WLM_ERR_DATABASE, "%s: kernel %s is damaged; build the archive again", a->path, hex));
  *size = (size_t)e->size;
done:
  wlmi_free(stored);
  if (status == WLM_OK) return status;
  wlmi_free(*data);
  *data = NULL;
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  wlmi_log(WLM_LOG_WARNING, "kernel archive: %s", wlm_error_detail());
  return WLM_ERR_NOT_FOUND;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* Writes the bytes of a kernel, compressed where that makes them fewer, and fills its entry except the offset. */
static wlm_status write_kernel(const wlmi_archived_kernel *k, FILE *file, entry *e) {
  lzma_options_lzma options;
  lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA2, .options = &options}, {.id = LZMA_VLI_UNKNOWN}};
  size_t packed = 0;
  void *buffer;
  WLM_CHECK(wlmi_alloc_array((int64_t)k->size, 1, "a compressed kernel", &buffer));
  lzma_lzma_preset(&options, LZMA_PRESET_DEFAULT | LZMA_PRESET_EXTREME);
  options.dict_size = WINDOW;
  const lzma_ret result =
      !k->size ? LZMA_BUF_ERROR
               : lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, NULL, k->data, k->size, buffer, &packed, k->size);
  if (result == LZMA_MEM_ERROR) {
    wlmi_free(buffer);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compressing a kernel");
  }
  const int is_packed = result == LZMA_OK && packed < k->size; /* LZMA_BUF_ERROR: it would not become smaller */
  const void *bytes = is_packed ? buffer : k->data;
  const size_t size = is_packed ? packed : k->size;
  *e = (entry){.key = k->key, .stored = (int64_t)size, .size = (int64_t)k->size, .hash = wlmi_hash_bytes(bytes, size)};
  if (size) fwrite(bytes, 1, size, file); /* closing reports a failure */
  wlmi_free(buffer);
  return WLM_OK;
}

/* The index is written last, to its place before the kernels. */
static wlm_status write_all(const char *path, FILE *file, const wlmi_archived_kernel *kernels, header *h,
                            entry *entries) {
  const size_t index = (size_t)h->count * sizeof *entries;
  h->size = (int64_t)(sizeof *h + index);
  if (fseek(file, (long)h->size, SEEK_SET)) return wlmi_fail(WLM_ERR_IO, "%s: must be a regular file", path);
  for (int64_t i = 0; i < h->count; i++) {
    WLM_CHECK(write_kernel(&kernels[i], file, &entries[i]));
    entries[i].offset = h->size;
    h->size += entries[i].stored;
  }
  h->index = wlmi_hash_bytes(entries, index);
  rewind(file);
  fwrite(h, sizeof *h, 1, file);
  if (index) fwrite(entries, 1, index, file);
  return WLM_OK;
}

wlm_status wlmi_kernel_archive_write(const char *path, wlmi_archived_kernel *kernels, int64_t count,
                                     int64_t *file_bytes) {
  wlmi_output output = {0};
  entry *entries = NULL;
  header h = {.version = VERSION};
  wlm_status status;
  memcpy(h.magic, magic, sizeof magic);
  if (count) qsort(kernels, (size_t)count, sizeof *kernels, compare_keys);
  for (int64_t i = 0; i < count; i++) {
    if (h.count && wlmi_hash_equal(kernels[h.count - 1].key, kernels[i].key)) continue;
    kernels[h.count++] = kernels[i];
  }
  WLM_TRY(wlmi_alloc_array(h.count, sizeof *entries, "index of a kernel archive", (void **)&entries));
  WLM_TRY(wlmi_output_open(path, &output));
  status = wlmi_output_close(&output, write_all(path, output.file, kernels, &h, entries));
  if (file_bytes) *file_bytes = h.size;
done:
  wlmi_free(entries);
  return status;
}
