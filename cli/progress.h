/* The progress of a long job on stderr: a bar on a terminal, plain lines elsewhere, both with the elapsed time and the
 * time left. */
#pragma once

#include <stdint.h>

enum { WLMI_PROGRESS_LINE = 512 };

typedef struct wlmi_progress {
  char title[96];           /* title of the part */
  int64_t parts, part;      /* part: from 0 on; -1 before the first */
  int on_terminal, columns; /* the terminal's width when the line was shown last */
  double started;           /* seconds */
  double limit;             /* the job ends at the latest after this many seconds; 0 = no limit */
  int64_t last_plain;       /* count of the last plain line */
} wlmi_progress;

/* Begins a job of `parts` parts of about equal duration. */
void wlmi_progress_begin(wlmi_progress *progress, int64_t parts, double limit_seconds);
/* Begins the next part; the last one may begin again. */
void wlmi_progress_next(wlmi_progress *progress, const char *title);
/* done of total in this part; `note` is about the last one. */
void wlmi_progress_show(wlmi_progress *progress, int64_t done, int64_t total, const char *note);
/* Removes the line from the terminal: at the end, and before another text on stderr. */
void wlmi_progress_clear(void);

/* ---- what is shown after so many seconds ---- */

/* Seconds left of the whole job, extrapolated from the work done so far; negative if nothing was done yet. */
double wlmi_progress_left(const wlmi_progress *progress, double elapsed, int64_t done, int64_t total);
/* "tune small n=16 (2 of 6) 3/15  0:12, 1:05 left  row_crc/cf=2 ...", on a terminal with a bar of the whole job. */
void wlmi_progress_line(const wlmi_progress *progress, double elapsed, int64_t done, int64_t total, const char *note,
                        char line[WLMI_PROGRESS_LINE]);

/* The width of the terminal that is open there; 80 where there is none. */
int wlmi_terminal_columns(int descriptor);

/* From here on SIGINT, SIGTERM and SIGHUP also end the compilers and other programs that this one runs. */
void wlmi_end_with_compilers(void);
/* The first SIGINT, SIGTERM or SIGHUP only ends those and is kept, so that work in progress can be stored; a second one
 * of the same kind ends the process as usual. Signals that the caller of the command had ignored stay ignored. */
void wlmi_catch_interrupts(void);
int wlmi_interrupted(void); /* the number of the signal; 0 = none came */
/* Ends the process by the signal that came, so that a shell sees it and ends its loop, too. Returns where none came. */
void wlmi_end_by_interrupt(void);

/* Messages of the command on standard error. */

/* Writes the text as one line, in place of a progress bar. Control characters in it, which may come from names, are
 * shown as escapes. */
void wlmi_print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
