/* kernels build: compiles kernels ahead into an archive (tuner/archive_build.h). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "tuner/archive_build.h"

/* "80,90"; wlmi_archive_build checks the numbers. */
static wlm_status read_archs(const char *list, wlmi_archive_request *request) {
  static const int standard[] = {80, 90, 100};
  char *end;
  const char *at = list;
  if (!list) {
    memcpy(request->archs, standard, sizeof standard);
    request->arch_count = sizeof standard / sizeof *standard;
    return WLM_OK;
  }
  do {
    if (request->arch_count == WLMI_ARCHIVE_ARCHS)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--arch takes at most %d numbers", WLMI_ARCHIVE_ARCHS);
    const long arch = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',') || arch < 0 || arch > 9999)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--arch must be numbers such as 80,90, not '%s'", list);
    request->archs[request->arch_count++] = (int)arch;
    at = end + 1;
  } while (*end);
  return WLM_OK;
}

typedef struct shown {
  wlmi_progress progress;
  int arch; /* of the part that is shown */
} shown;

static int show(void *user, int arch, int64_t done, int64_t total) {
  shown *s = user;
  if (arch != s->arch) {
    char title[32];
    snprintf(title, sizeof title, "compile for sm_%d", arch);
    wlmi_progress_next(&s->progress, title);
    s->arch = arch;
  }
  wlmi_progress_show(&s->progress, done, total, "");
  return wlmi_interrupted();
}

wlm_status wlmi_cmd_kernels_build(const wlmi_cli_options *options, wlmi_report *report) {
  shown shown = {.arch = 0};
  wlmi_archive_request request = {
      .path = options->output, .groups = options->parts, .only_f32 = options->single, .progress = show, .user = &shown};
  wlmi_archive_summary summary;
  wlmi_table table;
  wlm_status status;
  WLM_TRY(read_archs(options->archs, &request));
  if (!strcmp(options->output, "-"))
    WLM_TRY(wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "-o -: an archive is not written to standard output; name a file"));
  wlmi_catch_interrupts();
  wlmi_progress_begin(&shown.progress, request.arch_count, 0);
  status = wlmi_archive_build(&request, &summary);
  wlmi_progress_clear();
  WLM_TRY(status);
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "file=%s file_bytes=%jd cpu_seconds=%.0f", options->output, summary.file_bytes,
                      (double)clock() / CLOCKS_PER_SEC);
  wlmi_table_begin(&table, "arch,kernels,compiled,bytes");
  for (int i = 0; i < request.arch_count; i++) {
    wlmi_table_add(&table, "%d %jd %jd %jd", request.archs[i], summary.kernels[i], summary.compiled[i],
                   summary.bytes[i]);
  }
  wlmi_report_table(report, "architectures", &table, 0);
done:
  return status;
}
