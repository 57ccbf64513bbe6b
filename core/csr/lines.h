/* Reads the lines of a text file, plain or compressed by gzip, through one buffer of fixed size. */
#ifndef WLM_CSR_LINES_H
#define WLM_CSR_LINES_H

#include <zlib.h>

#include "core/base/status.h"

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

#endif
