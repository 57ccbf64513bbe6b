#include "cli/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/printable.h"
#include "core/base/process.h"
#include "tuner/timing.h"

/* The bar has its full length where the text before and after it usually fits as well, and is left out where that text
 * alone fills the line. */
enum { BAR = 24, LEAST_BAR = 10, BESIDE_BAR = 76, NO_BAR = 60, USUAL_COLUMNS = 80 };

static volatile sig_atomic_t interrupted;
static atomic_int is_shown; /* the terminal's last line is a progress line */

/* NVRTC sets the handlers of signals again by signal(), after which SA_RESETHAND has no effect. So the default is
 * restored here, and the signal is raised inside of the handler. */
static void on_end(int signal_number) {
  sigset_t only;
  wlmi_process_end_all();
  signal(signal_number, SIG_DFL);
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  raise(signal_number);
  _exit(128 + signal_number); /* NVRTC changed it again meanwhile */
}

static void on_interrupt(int signal_number) {
  if (interrupted == signal_number) on_end(signal_number);
  interrupted = signal_number;
  wlmi_process_end_all();
}

static void handle(void (*handler)(int)) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESTART}, before;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
}

void wlmi_end_with_compilers(void) { handle(on_end); }

void wlmi_catch_interrupts(void) { handle(on_interrupt); }

int wlmi_interrupted(void) { return interrupted; }

void wlmi_end_by_interrupt(void) {
  if (!interrupted) return;
  signal(interrupted, SIG_DFL);
  raise(interrupted);
}

void wlmi_progress_begin(wlmi_progress *progress, int64_t parts, double limit_seconds) {
  const char *terminal = secure_getenv("TERM");
  *progress = (wlmi_progress){
      .parts = parts > 0 ? parts : 1,
      .part = -1,
      .on_terminal = isatty(STDERR_FILENO) && !(terminal && !strcmp(terminal, "dumb")),
      .started = wlmi_seconds(),
      .limit = limit_seconds,
  };
}

void wlmi_progress_next(wlmi_progress *progress, const char *title) {
  if (progress->part + 1 < progress->parts) progress->part++;
  snprintf(progress->title, sizeof progress->title, "%s", title);
  progress->last_plain = -1;
}

int wlmi_terminal_columns(int descriptor) {
  struct winsize size;
  return !ioctl(descriptor, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

/* From 0 to 1, of the whole job. */
static double share_done(const wlmi_progress *progress, int64_t done, int64_t total) {
  const double part = total > 0 ? (double)done / (double)total : 0;
  return ((double)progress->part + part) / (double)progress->parts;
}

double wlmi_progress_left(const wlmi_progress *progress, double elapsed, int64_t done, int64_t total) {
  const double share = share_done(progress, done, total), most = progress->limit - elapsed;
  const double left = share > 0 ? elapsed * (1 - share) / share : -1;
  if (progress->limit <= 0 || (left >= 0 && left < most)) return left;
  return most > 0 ? most : 0;
}

/* "1:05" */
static void print_time(double seconds, char text[32]) {
  const long whole = (long)(seconds + 0.5);
  snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
}

/* "[####......] " */
static void print_bar(int columns, double share, char bar[BAR + 4]) {
  const int room = columns - BESIDE_BAR, length = room < LEAST_BAR ? LEAST_BAR : room > BAR ? BAR : room;
  memset(bar, '.', (size_t)length + 2);
  memset(bar + 1, '#', (size_t)(length * share));
  bar[0] = '[';
  memcpy(bar + length + 1, "] ", 3);
}

void wlmi_progress_line(const wlmi_progress *progress, double elapsed, int64_t done, int64_t total, const char *note,
                        char line[WLMI_PROGRESS_LINE]) {
  char bar[BAR + 4] = "", part[64] = "", gone[32], left[48] = "", time[32];
  const double seconds_left = wlmi_progress_left(progress, elapsed, done, total);
  if (progress->on_terminal && progress->columns >= NO_BAR)
    print_bar(progress->columns, share_done(progress, done, total), bar);
  if (progress->parts > 1)
    snprintf(part, sizeof part, " (%lld of %lld)", (long long)progress->part + 1, (long long)progress->parts);
  print_time(elapsed, gone);
  if (seconds_left >= 0) {
    print_time(seconds_left, time);
    snprintf(left, sizeof left, ", %s left", time);
  }
  snprintf(line, WLMI_PROGRESS_LINE, "%s%s %s%lld/%lld  %s%s  %.*s", progress->title, part, bar, (long long)done,
           (long long)total, gone, left, progress->on_terminal ? 60 : 256, note);
}

/* Cuts UTF-8 to so many characters. */
static void cut(char *text, int characters) {
  while (*text && ((*text & 0xC0) == 0x80 || characters-- > 0)) text++;
  *text = 0;
}

/* A line that fills the last column would wrap on some terminals. */
void wlmi_progress_show(wlmi_progress *progress, int64_t done, int64_t total, const char *note) {
  char line[WLMI_PROGRESS_LINE], shown[WLMI_PRINTABLE_SIZE(sizeof line)];
  if (!progress->on_terminal && done == progress->last_plain) return;
  progress->columns = wlmi_terminal_columns(STDERR_FILENO);
  wlmi_progress_line(progress, wlmi_seconds() - progress->started, done, total, note, line);
  wlmi_printable(line, 0, shown, sizeof shown);
  if (progress->on_terminal) cut(shown, progress->columns - 1);
  progress->last_plain = done;
  atomic_store(&is_shown, progress->on_terminal);
  fprintf(stderr, progress->on_terminal ? "\r\033[K%s" : "%s\n", shown);
  fflush(stderr);
}

void wlmi_progress_clear(void) {
  if (atomic_exchange(&is_shown, 0)) fputs("\r\033[K", stderr);
}

/* ---- messages ---- */

void wlmi_print_message(const char *format, ...) {
  char text[8192], shown[WLMI_PRINTABLE_SIZE(sizeof text)];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  wlmi_printable(text, 0, shown, sizeof shown);
  wlmi_progress_clear();
  fprintf(stderr, "%s\n", shown);
}
