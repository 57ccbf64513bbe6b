#include "bench/results_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/json_value.h"

static const char first_bytes[] = "{\"suite\":"; /* of every line */

static wlm_status failed(const char *path) { return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno)); }

static wlm_status read_all(wlmi_results *results) {
  char piece[65536];
  ssize_t got;
  while ((got = read(results->fd, piece, sizeof piece)) > 0) wlmi_text_append(&results->known, piece, (size_t)got);
  if (got < 0) return failed(results->path);
  return results->known.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s", results->path) : WLM_OK;
}

static int is_result(const char *line, size_t size) {
  const size_t length = sizeof first_bytes - 1;
  return !memcmp(line, first_bytes, size < length ? size : length);
}

static wlm_status cut_unfinished(wlmi_results *results) {
  wlmi_text *known = &results->known;
  size_t whole = known->size;
  while (whole && known->data[whole - 1] != '\n') whole--;
  if (known->size && (!is_result(known->data, known->size) || !is_result(known->data + whole, known->size - whole)))
    return wlmi_fail(WLM_ERR_PARSE, "%s: has lines that are no results of bench; name another file", results->path);
  if (whole == known->size) return WLM_OK;
  known->size = whole;
  known->data[whole] = 0;
  return ftruncate(results->fd, (off_t)whole) == 0 ? WLM_OK : failed(results->path);
}

wlm_status wlmi_results_open(const char *path, wlmi_results *results) {
  struct stat info;
  *results = (wlmi_results){.path = path, .fd = -1};
  if (!path) return WLM_OK;
  results->is_regular = stat(path, &info) || S_ISREG(info.st_mode);
  results->fd = results->is_regular ? open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                                    : open(path, O_WRONLY | O_CLOEXEC);
  if (results->fd < 0) return failed(path);
  if (!results->is_regular) return WLM_OK;
  const wlm_status status = read_all(results);
  return status == WLM_OK ? cut_unfinished(results) : status;
}

void wlmi_results_close(wlmi_results *results) {
  if (results->path && results->fd >= 0) close(results->fd);
  wlmi_text_release(&results->known);
  *results = (wlmi_results){.fd = -1};
}

void wlmi_results_begin(wlmi_text *line, const wlmi_bench_case *bench) {
  wlmi_json_open(line, NULL, '{');
  wlmi_json_put(line, "suite=%s device=%s matrix=%s", bench->suite->name, wlm_context_device_name(bench->context),
                bench->matrix);
}

void wlmi_results_put_matrix(wlmi_text *line, const wlmi_csr_host *a, int64_t n) {
  wlmi_json_put(line, "rows=%jd cols=%jd nnz=%jd n=%jd", a->rows, a->cols, a->nnz, n);
}

void wlmi_results_end(wlmi_text *line) {
  wlmi_json_close(line, '}');
  wlmi_text_puts(line, "\n");
}

static int is_text(const json_t *line, const char *key, const char *text) {
  const char *found = json_string_value(json_object_get(line, key));
  return found && !strcmp(found, text);
}

int wlmi_results_has(const wlmi_results *results, const char *suite, const char *device, const char *matrix,
                     int64_t n) {
  int found = 0;
  for (const char *at = results->known.data; at && *at && !found; at += strcspn(at, "\n") + 1) {
    json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
    found = is_text(line, "suite", suite) && is_text(line, "device", device) && is_text(line, "matrix", matrix) &&
            json_integer_value(json_object_get(line, "n")) == n;
    json_decref(line);
  }
  return found;
}

/* Removes the part of a line that was written to the end of the file, unless another run has appended behind it.
 * Returns 0 if it stays; the next run cuts it off then. */
static int take_back(const wlmi_results *results, off_t end, size_t wrote) {
  struct stat info;
  return results->is_regular && !fstat(results->fd, &info) && info.st_size == end + (off_t)wrote &&
         !ftruncate(results->fd, end);
}

wlm_status wlmi_results_append(wlmi_results *results, const wlmi_text *line) {
  size_t wrote = 0;
  ssize_t more = 1;
  if (line->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a result");
  if (results->fd < 0) return WLM_OK;
  const off_t end = results->is_regular ? lseek(results->fd, 0, SEEK_END) : 0;
  while (wrote < line->size && (more > 0 || errno == EINTR)) {
    more = write(results->fd, line->data + wrote, line->size - wrote);
    if (more > 0) wrote += (size_t)more;
  }
  if (wrote == line->size && (!results->is_regular || !fsync(results->fd))) return WLM_OK;
  const wlm_status status = failed(results->path);
  if (wrote < line->size) take_back(results, end, wrote);
  return status;
}

double wlmi_method_us(const wlmi_method *method) {
  return method && !method->failure ? 1e6 * method->seconds : (double)NAN;
}

void wlmi_results_put_methods(wlmi_text *line, const char *times, const char *errors, const wlmi_method *methods,
                              int count) {
  wlmi_json_open(line, times, '{');
  for (int i = 0; i < count; i++) wlmi_json_real(line, methods[i].name, "%.3f", wlmi_method_us(&methods[i]));
  wlmi_json_close(line, '}');
  wlmi_json_open(line, errors, '{');
  for (int i = 0; i < count; i++)
    if (methods[i].failure) wlmi_json_string(line, methods[i].name, methods[i].failure);
  wlmi_json_close(line, '}');
}
