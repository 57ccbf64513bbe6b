/* zlib's gzread also reads plain files, so one path serves both. A line must fit into the buffer: when the buffer has
 * no further line end, the rest moves to its front and the file fills the free space. */
#include "core/csr/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"

/* "-" is standard input. */
static gzFile open_file(const char *path) {
  if (strcmp(path, "-")) return gzopen(path, "rb");
  const int copy = dup(STDIN_FILENO); /* gzclose closes it */
  return copy < 0 ? NULL : gzdopen(copy, "rb");
}

wlm_status wlmi_lines_open(const char *path, wlmi_lines *lines) {
  *lines = (wlmi_lines){.path = strcmp(path, "-") ? path : "standard input"};
  errno = 0;
  lines->file = open_file(path);
  if (!lines->file)
    return wlmi_fail(errno ? WLM_ERR_IO : WLM_ERR_OUT_OF_MEMORY, "%s: cannot be opened: %s", lines->path,
                     errno ? strerror(errno) : "out of memory");
  lines->buffer = wlmi_alloc(WLM_LINES_BUFFER + 1); /* a NUL always fits behind the last line */
  if (!lines->buffer || gzbuffer(lines->file, WLM_LINES_BUFFER / 2)) {
    wlmi_lines_close(lines);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: read buffer", path);
  }
  return WLM_OK;
}

void wlmi_lines_close(wlmi_lines *lines) {
  if (lines->file) gzclose(lines->file);
  wlmi_free(lines->buffer);
  *lines = (wlmi_lines){0};
}

static wlm_status read_failed(const wlmi_lines *lines) {
  int code, system = errno;
  const char *text = gzerror(lines->file, &code);
  if (code == Z_ERRNO)
    return wlmi_fail(WLM_ERR_IO, "%s: cannot be read: %s", lines->path, system ? strerror(system) : text);
  return wlmi_fail(WLM_ERR_IO, "%s:%lld: damaged gzip data after this line (%s); fetch or compress the file again",
                   lines->path, (long long)lines->number, code == Z_BUF_ERROR ? "it ends too early" : text);
}

static wlm_status fill(wlmi_lines *lines) {
  lines->end -= lines->at;
  memmove(lines->buffer, lines->buffer + lines->at, lines->end);
  lines->at = 0;
  if (lines->end == WLM_LINES_BUFFER)
    return wlmi_fail(WLM_ERR_PARSE, "%s:%lld: a line of more than %d bytes; break it up or remove it", lines->path,
                     (long long)lines->number + 1, WLM_LINES_BUFFER);
  int size = gzread(lines->file, lines->buffer + lines->end, (unsigned)(WLM_LINES_BUFFER - lines->end));
  int code = Z_OK;
  if (size == 0) gzerror(lines->file, &code); /* a file cut short reads as its end, with the error set */
  if (size < 0 || code != Z_OK) return read_failed(lines);
  lines->drained = size == 0;
  lines->end += (size_t)size;
  return WLM_OK;
}

wlm_status wlmi_lines_next(wlmi_lines *lines, char **line) {
  char *newline;
  size_t seen = 0;
  *line = NULL;
  while (!(newline = memchr(lines->buffer + lines->at + seen, '\n', lines->end - lines->at - seen)) &&
         !lines->drained) {
    seen = lines->end - lines->at;
    WLM_CHECK(fill(lines));
  }
  if (lines->at == lines->end) return WLM_OK;
  char *start = lines->buffer + lines->at, *end = newline ? newline : lines->buffer + lines->end;
  lines->at = (size_t)(end - lines->buffer) + (newline != NULL);
  lines->number++;
  if (end > start && end[-1] == '\r') end--;
  *end = 0;
  if (memchr(start, 0, (size_t)(end - start)))
    return wlmi_fail(WLM_ERR_PARSE, "%s:%lld: a NUL byte; this is not a text file", lines->path,
                     (long long)lines->number);
  *line = start;
  return WLM_OK;
}

wlm_status wlmi_lines_peek(wlmi_lines *lines, size_t size, const char **start, size_t *found) {
  wlm_status status = WLM_OK;
  while (status == WLM_OK && lines->end < size && !lines->drained) status = fill(lines);
  *start = lines->buffer;
  *found = lines->end;
  return status;
}

wlm_status wlmi_lines_rest(wlmi_lines *lines, wlmi_text *bytes) {
  wlm_status status = WLM_OK;
  if (!gzdirect(lines->file))
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: compressed by gzip, which only text files may be; unpack it by gunzip",
                     lines->path);
  do {
    wlmi_text_append(bytes, lines->buffer + lines->at, lines->end - lines->at);
    lines->at = lines->end;
    if (!lines->drained) status = fill(lines);
  } while (status == WLM_OK && !bytes->failed && lines->at < lines->end);
  return bytes->failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %zu bytes", lines->path, bytes->size) : status;
}
