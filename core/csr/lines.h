/* Reads the lines of a text file, plain or compressed by gzip, through one buffer of fixed size. */
#pragma once

#include <zlib.h>

#include "core/base/text.h"

enum { WLM_LINES_BUFFER = 1 << 18 };

typedef struct wlmi_lines {
  const char *path; /* the caller's, or "standard input" */
  gzFile file;
  int64_t number; /* of the last line returned, from 1 */
  char *buffer;   /* unread bytes at buffer[at, end) */
  size_t at, end;
  int drained; /* nothing more comes from the file */
} wlmi_lines;

/* "-" is standard input. The first bytes decide whether the data is compressed, not the name. WLM_ERR_IO */
wlm_status wlmi_lines_open(const char *path, wlmi_lines *lines);
void wlmi_lines_close(wlmi_lines *lines); /* also of a zeroed one */

/* The next line without its end (\n or \r\n), terminated by NUL and valid until the next call; NULL after the
 * last. WLM_ERR_IO for damaged gzip data, WLM_ERR_PARSE for a NUL byte or a line longer than the buffer. */
wlm_status wlmi_lines_next(wlmi_lines *lines, char **line);

/* The first bytes of the file, before any line is read; fewer than `size` only where the file is shorter. */
wlm_status wlmi_lines_peek(wlmi_lines *lines, size_t size, const char **start, size_t *found);
/* Appends all bytes that were not read as lines. A compressed file is refused: it may unpack to any size. */
wlm_status wlmi_lines_rest(wlmi_lines *lines, wlmi_text *bytes);
