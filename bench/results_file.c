#include "bench/results_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static wlm_status failed(const char *path) { return wlmi_fail(WLM_ERR_IO, "%s: %s", path, strerror(errno)); }

static wlm_status read_all(wlmi_results *results) {
  char piece[65536];
  for (size_t got; (got = fread(piece, 1, sizeof piece, results->file)) > 0;)
    wlmi_text_append(&results->known, piece, got);
  if (ferror(results->file)) return failed(results->path);
  return results->known.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s", results->path) : WLM_OK;
}

wlm_status wlmi_results_open(const char *path, wlmi_results *results) {
  *results = (wlmi_results){.path = path};
  if (!path) return WLM_OK;
  results->file = fopen(path, "a+b");
  if (!results->file) return failed(path);
  wlm_status status = read_all(results);
  if (status != WLM_OK) return status;
  wlmi_text *known = &results->known;
  size_t whole = known->size;
  while (whole && known->data[whole - 1] != '\n') whole--;
  if (whole == known->size) return WLM_OK;
  known->size = whole;
  known->data[whole] = 0;
  return ftruncate(fileno(results->file), (off_t)whole) == 0 ? WLM_OK : failed(path);
}

void wlmi_results_close(wlmi_results *results) {
  if (results->file) fclose(results->file);
  wlmi_text_release(&results->known);
  *results = (wlmi_results){0};
}

void wlmi_results_begin(wlmi_text *line, const char *suite, const char *device, const char *matrix) {
  wlmi_json_open(line, NULL, '{');
  wlmi_json_string(line, "suite", suite);
  wlmi_json_string(line, "device", device);
  wlmi_json_string(line, "matrix", matrix);
}

void wlmi_results_put_matrix(wlmi_text *line, const wlmi_csr_host *a, int64_t n) {
  wlmi_json_integer(line, "rows", a->rows);
  wlmi_json_integer(line, "cols", a->cols);
  wlmi_json_integer(line, "nnz", a->nnz);
  wlmi_json_integer(line, "n", n);
}

void wlmi_results_end(wlmi_text *line) {
  wlmi_json_close(line, '}');
  wlmi_text_puts(line, "\n");
}

static int has_in_line(const char *line, size_t size, const wlmi_text *begin, const char *n) {
  if (size < begin->size || memcmp(line, begin->data, begin->size)) return 0;
  return memmem(line, size, n, strlen(n)) != NULL;
}

int wlmi_results_has(const wlmi_results *results, const char *suite, const char *device, const char *matrix,
                     int64_t n) {
  char width[40];
  wlmi_text begin = {0};
  int found = 0;
  snprintf(width, sizeof width, "\"n\":%lld,", (long long)n);
  wlmi_results_begin(&begin, suite, device, matrix);
  const char *line = results->known.data;
  while (line && *line && !begin.failed && !found) {
    size_t size = strcspn(line, "\n");
    found = has_in_line(line, size, &begin, width);
    line += size + (line[size] == '\n');
  }
  wlmi_text_release(&begin);
  return found;
}

wlm_status wlmi_results_append(wlmi_results *results, const wlmi_text *line) {
  if (line->failed) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a result");
  if (!results->file) return WLM_OK;
  int whole = fwrite(line->data, 1, line->size, results->file) == line->size && fflush(results->file) == 0;
  return whole && fsync(fileno(results->file)) == 0 ? WLM_OK : failed(results->path);
}

double wlmi_method_us(const wlmi_method *method) {
  return method && !method->failure ? 1e6 * method->seconds : (double)NAN;
}

void wlmi_row_cell(wlmi_text *row, int width, double value) {
  if (isfinite(value))
    wlmi_text_printf(row, " %*.2f", width, value);
  else
    wlmi_text_printf(row, " %*s", width, "-");
}
