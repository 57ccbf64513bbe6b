#include "common/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/status.h"

wlm_status wlmi_temporary_folder(char folder[WLM_TEMPORARY_NAME]) {
  const char *root = getenv("TMPDIR");
  if (!root || !*root) root = "/tmp";
  const int size = snprintf(folder, WLM_TEMPORARY_NAME, "%s/warploom-XXXXXX", root);
  if (size < 0 || size >= WLM_TEMPORARY_NAME || !mkdtemp(folder))
    return wlmi_fail(WLM_ERR_IO, "no temporary folder under %s: %s; set TMPDIR", root, strerror(errno));
  return WLM_OK;
}
