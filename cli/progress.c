#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuner/timing.h"

enum { BAR = 24 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

void wlm_catch_interrupts(void) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}

int wlm_interrupted(void) { return interrupted; }

void wlm_progress_begin(wlm_progress *progress, const char *title, double limit_seconds) {
  const char *terminal = getenv("TERM");
  *progress = (wlm_progress){
      .title = title,
      .on_terminal = isatty(STDERR_FILENO) && !(terminal && !strcmp(terminal, "dumb")),
      .started = wlm_seconds(),
      .limit = limit_seconds,
  };
}

static void time_left(const wlm_progress *progress, int64_t done, int64_t total, char text[32]) {
  double elapsed = wlm_seconds() - progress->started;
  text[0] = 0;
  if (!done) return;
  double left = elapsed / (double)done * (double)(total - done);
  if (progress->limit > 0 && left > progress->limit - elapsed) left = progress->limit - elapsed;
  long seconds = left > 0 ? (long)(left + 0.5) : 0;
  snprintf(text, 32, "  %ld:%02ld left", seconds / 60, seconds % 60);
}

static void draw_bar(const wlm_progress *progress, int64_t done, int64_t total, const char *note) {
  char bar[BAR + 1], left[32];
  int filled = total ? (int)(BAR * done / total) : 0;
  memset(bar, '.', BAR);
  memset(bar, '#', (size_t)filled);
  bar[BAR] = 0;
  time_left(progress, done, total, left);
  fprintf(stderr, "\r\033[K%s [%s] %lld/%lld%s  %.60s", progress->title, bar, (long long)done, (long long)total, left,
          note);
  fflush(stderr);
}

void wlm_progress_show(wlm_progress *progress, int64_t done, int64_t total, const char *note) {
  if (progress->on_terminal) {
    draw_bar(progress, done, total, note);
  } else if (done != progress->last_plain) {
    progress->last_plain = done;
    fprintf(stderr, "%s %lld/%lld %s\n", progress->title, (long long)done, (long long)total, note);
  }
}

void wlm_progress_end(wlm_progress *progress) {
  if (progress->on_terminal) fputs("\r\033[K", stderr);
}
