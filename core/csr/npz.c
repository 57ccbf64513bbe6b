/* minizip, which comes with zlib, reads the archive from memory, because the file may be a pipe. */
#include "core/csr/npz.h"

#include <errno.h>
#include <math.h>
#include <minizip/unzip.h>
#include <string.h>

#include "core/csr/lines.h"
#include "core/problem/element.h"
#include "core/problem/size.h"

enum { HEADER = 1 << 12, BLOCK = 1 << 15, MOST_DEFLATED = 1032 }; /* deflate packs no better than 1032 to 1 */

/* ---- the archive in memory ---- */

static voidpf open_bytes(voidpf bytes, const void *name, int mode) {
  const wlmi_npz_bytes *from = bytes;
  return (void)name, (void)mode, fmemopen((void *)from->data, from->size, "rb");
}

/* minizip takes the end of a file for a zero. */
static int error_of_bytes(voidpf bytes, voidpf stream) { return (void)bytes, feof(stream) || ferror(stream); }

/* Whether any file of the archive is an array; -1 = it is damaged. */
static int has_arrays(const wlmi_npz *npz) {
  char name[64] = "";
  unz_file_info64 info;
  int status = unzGoToFirstFile(npz->zip);
  for (; status == UNZ_OK; status = unzGoToNextFile(npz->zip)) {
    if (unzGetCurrentFileInfo64(npz->zip, &info, name, sizeof name - 1, NULL, 0, NULL, 0) != UNZ_OK) return -1;
    if (strstr(name, ".npy")) return 1;
  }
  return status == UNZ_END_OF_LIST_OF_FILE ? 0 : -1;
}

wlm_status wlmi_npz_open(const char *path, const wlmi_npz_bytes *bytes, wlmi_npz *npz) {
  zlib_filefunc64_def functions;
  fill_fopen64_filefunc(&functions);
  functions.zopen64_file = open_bytes;
  functions.zerror_file = error_of_bytes;
  functions.opaque = (void *)bytes;
  errno = 0; /* minizip does not say why it failed */
  *npz = (wlmi_npz){.path = path, .zip = unzOpen2_64(path, &functions), .size = bytes->size};
  const int found = npz->zip ? has_arrays(npz) : -1;
  if (found > 0) return WLM_OK;
  if (found == 0)
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "%s: a zip archive without arrays of NumPy; unpack it, and give the matrix file in it", path);
  if (errno == ENOMEM) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: reading the zip archive", path);
  return wlmi_fail(WLM_ERR_PARSE, "%s: damaged zip data; fetch the file or save the matrix again", path);
}

void wlmi_npz_close(wlmi_npz *npz) {
  if (npz->zip) unzClose(npz->zip); /* with the array that is open */
  *npz = (wlmi_npz){0};
}

/* ---- the head of an array ---- */

static wlm_status fail(const wlmi_npz *npz, const char *name, wlm_status status, const char *text) {
  return wlmi_fail(status, "%s: %s: %s", npz->path, name, text);
}

static wlm_status damaged(const wlmi_npz *npz, const char *name) {
  if (errno == ENOMEM) return fail(npz, name, WLM_ERR_OUT_OF_MEMORY, "unpacking it");
  return fail(npz, name, WLM_ERR_PARSE, "damaged zip data; fetch the file or save the matrix again");
}

static wlm_status read_exactly(wlmi_npz *npz, const char *name, void *to, size_t size) {
  for (size_t got = 0; got < size;) {
    const int more = unzReadCurrentFile(npz->zip, (char *)to + got, (unsigned)(size - got));
    if (more <= 0) return damaged(npz, name);
    got += (size_t)more;
  }
  return WLM_OK;
}

/* The length of the header follows the version: in two bytes in version 1, in four bytes in later ones. */
static wlm_status read_header(wlmi_npz *npz, const char *name, char text[HEADER], int64_t *bytes) {
  unsigned char head[12] = {0};
  wlm_status status = read_exactly(npz, name, head, 8);
  if (status == WLM_OK && (memcmp(head, "\x93NUMPY", 6) || head[6] < 1 || head[6] > 3))
    return fail(npz, name, WLM_ERR_PARSE, "not an array of NumPy; save the matrix again by scipy.sparse.save_npz");
  const size_t width = head[6] == 1 ? 2 : 4;
  if (status == WLM_OK) status = read_exactly(npz, name, head + 8, width);
  if (status != WLM_OK) return status;
  const uint32_t length = head[8] | (uint32_t)head[9] << 8 | (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
  if (length >= HEADER) return fail(npz, name, WLM_ERR_PARSE, "a header of 4096 bytes or more; save the matrix again");
  *bytes = (int64_t)(8 + width + length);
  text[length] = 0;
  return read_exactly(npz, name, text, length);
}

/* "(3, 4)", "(3,)" or "()", from behind its first bracket on. */
static int read_shape(const char *text, wlmi_npz_array *array) {
  array->count = 1;
  for (array->dimensions = 0; *text != ')'; array->dimensions++) {
    int64_t *size = &array->shape[array->dimensions];
    if (array->dimensions == WLMI_NPZ_DIMENSIONS || !(text = wlmi_parse_int64(text, size)) || !wlmi_is_size(*size) ||
        __builtin_mul_overflow(array->count, *size, &array->count) || !wlmi_is_size(array->count))
      return 0;
    text += strspn(text, ", ");
  }
  return 1;
}

static wlm_status read_type(const wlmi_npz *npz, wlmi_npz_array *array, const char *type) {
  int64_t item = 0;
  const char *end = *type ? wlmi_parse_int64(type + 2, &item) : NULL;
  if (!strchr("<|=", *type) || !strchr("biufSU", type[1]) || !end || *end || item < 1 || item > 64)
    return wlmi_fail(WLM_ERR_UNSUPPORTED,
                     "%s: %s: elements of type '%s' are not supported; convert them, as in A.astype('float32')",
                     npz->path, array->name, type);
  array->kind = type[1];
  array->item = (int)item * (type[1] == 'U' ? 4 : 1);
  return WLM_OK;
}

/* Bytes that the archive says the open file has; -1 where its sizes contradict each other. */
static int64_t size_of_file(const wlmi_npz *npz) {
  unz_file_info64 info;
  if (unzGetCurrentFileInfo64(npz->zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK) return -1;
  if (info.compressed_size > npz->size || info.uncompressed_size / MOST_DEFLATED > info.compressed_size) return -1;
  return (int64_t)info.uncompressed_size;
}

wlm_status wlmi_npz_enter(wlmi_npz *npz, const char *name, wlmi_npz_array *array) {
  char header[HEADER], type[16] = "";
  int shape = 0;
  int64_t head_bytes = 0;
  *array = (wlmi_npz_array){.name = name};
  if (unzLocateFile(npz->zip, name, 1) != UNZ_OK)
    return fail(npz, name, WLM_ERR_PARSE, "the file has no such array; save the matrix by scipy.sparse.save_npz");
  errno = 0;
  const int64_t bytes = size_of_file(npz);
  if (bytes < 0 || unzOpenCurrentFile(npz->zip) != UNZ_OK) return damaged(npz, name);
  WLM_CHECK(read_header(npz, name, header, &head_bytes));
  sscanf(header, " { 'descr' : '%15[^']' , 'fortran_order' : %*5[A-Za-z] , 'shape' : ( %n", type, &shape);
  if (!shape || !read_shape(header + shape, array))
    return fail(npz, name, WLM_ERR_PARSE, "an array of another form; save the matrix by scipy.sparse.save_npz");
  WLM_CHECK(read_type(npz, array, type));
  if (array->count > bytes || array->count * array->item != bytes - head_bytes)
    return fail(npz, name, WLM_ERR_PARSE, "the array's shape and its size in bytes differ; save the matrix again");
  return WLM_OK;
}

/* ---- elements ---- */

/* Closing compares the checksum. */
static wlm_status leave(wlmi_npz *npz, const wlmi_npz_array *array) {
  char more;
  const int rest = unzReadCurrentFile(npz->zip, &more, 1), closed = unzCloseCurrentFile(npz->zip);
  return rest || closed != UNZ_OK ? damaged(npz, array->name) : WLM_OK;
}

typedef wlm_status convert_fn(const wlmi_npz *npz, const wlmi_npz_array *array, const char *from, int64_t i,
                              void *user);

static wlm_status each(wlmi_npz *npz, const wlmi_npz_array *array, convert_fn *convert, void *user) {
  _Alignas(8) char block[BLOCK];
  const int64_t fit = BLOCK / array->item;
  for (int64_t i = 0; i < array->count; i += fit) {
    const int64_t count = array->count - i < fit ? array->count - i : fit;
    WLM_CHECK(read_exactly(npz, array->name, block, (size_t)(count * array->item)));
    for (int64_t k = 0; k < count; k++) WLM_CHECK(convert(npz, array, block + k * array->item, i + k, user));
  }
  return leave(npz, array);
}

static wlm_status refuse(const wlmi_npz *npz, const wlmi_npz_array *array, int64_t i, const char *text) {
  return wlmi_fail(WLM_ERR_PARSE, "%s: %s: entry %lld %s", npz->path, array->name, (long long)i, text);
}

static wlm_status refuse_type(const wlmi_npz *npz, const wlmi_npz_array *array, const char *wanted) {
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: %s: elements of type '%c%d' where %s are needed; convert them", npz->path,
                   array->name, array->kind, array->item, wanted);
}

static int is_integer(const wlmi_npz_array *array) {
  return strchr("biu", array->kind) && (array->item == 8 || array->item == 4 || array->item == 2 || array->item == 1);
}

/* Little-endian. Unsigned ones above the range of int64 come out negative. */
static int64_t integer_at(const wlmi_npz_array *array, const char *from) {
  uint64_t value = 0;
  const int above = 64 - 8 * array->item;
  memcpy(&value, from, (size_t)array->item);
  return array->kind == 'i' ? (int64_t)(value << above) >> above : (int64_t)value;
}

typedef struct integers {
  int64_t most, *out64;
  int32_t *out32;
} integers;

static wlm_status to_integer(const wlmi_npz *npz, const wlmi_npz_array *array, const char *from, int64_t i,
                             void *user) {
  const integers *to = user;
  const int64_t value = integer_at(array, from);
  if (value < 0 || value > to->most) {
    char text[96];
    snprintf(text, sizeof text, "is %lld; it must be 0 to %lld", (long long)value, (long long)to->most);
    return refuse(npz, array, i, text);
  }
  if (to->out64)
    to->out64[i] = value;
  else
    to->out32[i] = (int32_t)value;
  return WLM_OK;
}

static wlm_status read_integers(wlmi_npz *npz, const wlmi_npz_array *array, integers *to) {
  if (!is_integer(array)) return refuse_type(npz, array, "integers");
  return each(npz, array, to_integer, to);
}

wlm_status wlmi_npz_int64s(wlmi_npz *npz, const wlmi_npz_array *array, int64_t most, int64_t *out) {
  return read_integers(npz, array, &(integers){most, out, NULL});
}

wlm_status wlmi_npz_int32s(wlmi_npz *npz, const wlmi_npz_array *array, int64_t most, int32_t *out) {
  return read_integers(npz, array, &(integers){most < INT32_MAX ? most : INT32_MAX, NULL, out});
}

static double number_at(const wlmi_npz_array *array, const char *from) {
  static const wlm_type floats[] = {[2] = WLM_F16, [4] = WLM_F32, [8] = WLM_F64};
  if (array->kind == 'f') return wlmi_element_get(floats[array->item], from, 0);
  const int64_t value = integer_at(array, from);
  return array->kind == 'i' ? (double)value : (double)(uint64_t)value;
}

static wlm_status to_float(const wlmi_npz *npz, const wlmi_npz_array *array, const char *from, int64_t i, void *user) {
  const double value = number_at(array, from);
  float *rounded = (float *)user + i;
  *rounded = (float)value;
  if (isinf(*rounded) && !isinf(value)) return refuse(npz, array, i, "is beyond the range of float; scale the values");
  return WLM_OK;
}

wlm_status wlmi_npz_floats(wlmi_npz *npz, const wlmi_npz_array *array, float *out) {
  const int is_float = array->kind == 'f' && (array->item == 2 || array->item == 4 || array->item == 8);
  if (!is_float && !is_integer(array)) return refuse_type(npz, array, "real numbers");
  return each(npz, array, to_float, out);
}

/* A text of type U has four bytes a character. */
wlm_status wlmi_npz_text(wlmi_npz *npz, const wlmi_npz_array *array, char *out, size_t size) {
  char bytes[4 * 64] = {0};
  const int step = array->kind == 'U' ? 4 : 1, characters = array->item / step;
  if (!strchr("SU", array->kind) || array->count != 1 || (size_t)characters >= size)
    return refuse_type(npz, array, "a short text");
  WLM_CHECK(read_exactly(npz, array->name, bytes, (size_t)array->item));
  for (int i = 0; i < characters; i++) out[i] = bytes[i * step];
  out[characters] = 0;
  return leave(npz, array);
}
