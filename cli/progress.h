/* How far a long job is: a bar with the time left on a terminal, plain lines elsewhere. Writes to stderr. */
#ifndef WLM_CLI_PROGRESS_H
#define WLM_CLI_PROGRESS_H

#include <stdint.h>

typedef struct wlm_progress {
  const char *title;
  int on_terminal;
  double started;     /* seconds */
  double limit;       /* the job ends after so many seconds at the latest; 0 = no limit */
  int64_t last_plain; /* count that the last plain line told */
} wlm_progress;

void wlm_progress_begin(wlm_progress *progress, const char *title, double limit_seconds);
/* `note` is what was done last. */
void wlm_progress_show(wlm_progress *progress, int64_t done, int64_t total, const char *note);
void wlm_progress_end(wlm_progress *progress);

/* The first Ctrl-C sets the flag that wlm_interrupted tells, the second ends the process as usual. */
void wlm_catch_interrupts(void);
int wlm_interrupted(void);

#endif
