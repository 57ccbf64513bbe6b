/* The progress display of a long job: time left, bar and plain lines. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/progress.h"
#include "support/test.h"

static wlmi_progress job(int64_t parts, int64_t part, double limit, int on_terminal) {
  wlmi_progress p;
  wlmi_progress_begin(&p, parts, limit);
  for (int64_t i = 0; i <= part; i++) wlmi_progress_next(&p, "tune small n=16");
  p.on_terminal = on_terminal;
  p.columns = 120;
  return p;
}

static int near(double a, double b) { return fabs(a - b) < 1e-9; }

TEST(time_left_covers_the_whole_job) {
  wlmi_progress p = job(1, 0, 0, 0);
  assert_true(wlmi_progress_left(&p, 30, 0, 15) < 0); /* nothing is finished, so the time is unknown */
  assert_true(wlmi_progress_left(&p, 30, 0, 0) < 0);
  assert_true(near(wlmi_progress_left(&p, 30, 5, 15), 60));
  assert_true(near(wlmi_progress_left(&p, 30, 15, 15), 0));
  p = job(6, 1, 0, 0); /* a third of the second of six parts: 4/18 of the job */
  assert_true(near(wlmi_progress_left(&p, 40, 5, 15), 140));
  assert_true(near(wlmi_progress_left(&p, 30, 0, 15), 150));
}

TEST(a_limit_ends_it_sooner) {
  wlmi_progress p = job(6, 0, 100, 0);
  assert_true(near(wlmi_progress_left(&p, 10, 0, 15), 90));
  assert_true(near(wlmi_progress_left(&p, 60, 5, 15), 40));
  assert_true(near(wlmi_progress_left(&p, 130, 5, 15), 0));
  p = job(6, 5, 100, 0);
  assert_true(near(wlmi_progress_left(&p, 32, 3, 9), 4)); /* 16/18 of the job */
}

TEST(parts_do_not_run_over) {
  wlmi_progress p = job(2, 4, 0, 0);
  assert_int_equal(p.part, 1);
  assert_true(near(wlmi_progress_left(&p, 30, 1, 1), 0));
}

TEST(lines) {
  char line[WLMI_PROGRESS_LINE];
  wlmi_progress p = job(1, 0, 0, 0);
  wlmi_progress_line(&p, 62, 0, 15, "compiling", line);
  assert_string_equal(line, "tune small n=16 0/15  1:02  compiling");
  wlmi_progress_line(&p, 5, 5, 15, "row_crc/cf=2 5.10 us (best 5.10)", line);
  assert_string_equal(line, "tune small n=16 5/15  0:05, 0:10 left  row_crc/cf=2 5.10 us (best 5.10)");
  p = job(4, 1, 0, 1);
  wlmi_progress_line(&p, 3, 10, 20, "x", line);
  assert_string_equal(line, "tune small n=16 (2 of 4) [#########...............] 10/20  0:03, 0:05 left  x");
  wlmi_progress_next(&p, "n");
  wlmi_progress_next(&p, "n");
  wlmi_progress_line(&p, 3, 20, 20, "x", line);
  assert_string_equal(line, "n (4 of 4) [########################] 20/20  0:03, 0:00 left  x");
}

TEST(the_bar_shrinks_with_the_terminal) {
  char line[WLMI_PROGRESS_LINE];
  wlmi_progress p = job(1, 0, 0, 1);
  p.columns = 92;
  wlmi_progress_line(&p, 3, 1, 2, "x", line);
  assert_string_equal(line, "tune small n=16 [########........] 1/2  0:03, 0:03 left  x");
  p.columns = 60;
  wlmi_progress_line(&p, 3, 1, 2, "x", line);
  assert_string_equal(line, "tune small n=16 [#####.....] 1/2  0:03, 0:03 left  x");
  p.columns = 59;
  wlmi_progress_line(&p, 3, 1, 2, "x", line);
  assert_string_equal(line, "tune small n=16 1/2  0:03, 0:03 left  x");
}

/* A long text is cut, so that it fills one line only. */
TEST(long_texts_are_cut) {
  char line[WLMI_PROGRESS_LINE], text[2 * WLMI_PROGRESS_LINE];
  wlmi_progress p = job(3, 0, 0, 1);
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = 0;
  wlmi_progress_next(&p, text);
  wlmi_progress_line(&p, 1e9, INT64_MAX / 2, INT64_MAX, text, line);
  assert_in_range(strlen(line), 100, WLMI_PROGRESS_LINE - 1);
}

/* Shows progress on a terminal or pipe, with a message in between, and reads what comes out. */
static void show(int out, int in, const char *title, char *text, size_t size) {
  const int before = dup(STDERR_FILENO);
  wlmi_progress p;
  size_t length = 0;
  dup2(out, STDERR_FILENO);
  wlmi_progress_begin(&p, 2, 0);
  wlmi_progress_next(&p, title);
  wlmi_progress_show(&p, 1, 2, "one");
  wlmi_progress_show(&p, 1, 2, "still one");
  wlmi_print_message("a warning");
  wlmi_print_message("another");
  wlmi_progress_show(&p, 2, 2, "two");
  wlmi_progress_clear();
  dup2(before, STDERR_FILENO);
  close(before);
  close(out);
  for (ssize_t got; length + 1 < size && (got = read(in, text + length, size - 1 - length)) > 0;) length += (size_t)got;
  text[length] = 0;
  close(in);
}

TEST(a_pipe_gets_lines) {
  int ends[2];
  char text[1024];
  assert_int_equal(pipe(ends), 0);
  show(ends[1], ends[0], "first", text, sizeof text);
  assert_string_equal(text,
                      "first (1 of 2) 1/2  0:00, 0:00 left  one\na warning\nanother\n"
                      "first (1 of 2) 2/2  0:00, 0:00 left  two\n");
}

/* Opens a pseudo terminal of so many columns (0: it does not know its size). */
static int open_terminal(int columns, int *in) {
  const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
  setenv("TERM", "xterm", 1);
  *in = posix_openpt(O_RDWR | O_NOCTTY);
  if (*in < 0 || grantpt(*in) || unlockpt(*in)) skip();
  const int out = open(ptsname(*in), O_RDWR | O_NOCTTY);
  if (out < 0 || ioctl(out, TIOCSWINSZ, &size)) skip();
  return out;
}

#define CLEAR "\r\033[K"
TEST(a_terminal_gets_a_bar) {
  char text[1024];
  int in;
  const int out = open_terminal(120, &in);
  show(out, in, "first", text, sizeof text);
  assert_non_null(strstr(text, CLEAR "first (1 of 2) [######..................] 1/2"));
  assert_non_null(strstr(text, "still one" CLEAR "a warning\r\nanother\r\n" CLEAR "first (1 of 2) [####"));
  assert_string_equal(text + strlen(text) - 4, CLEAR);
}

/* A character of two bytes takes one column. */
TEST(no_line_wraps) {
  static const int widths[] = {0, 20, 40, 80, 100, 200};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    char text[4096];
    int in, longest = 0, cut = 0;
    const int out = open_terminal(widths[i], &in), columns = widths[i] ? widths[i] : 80;
    show(out, in, "tune a-graph-with-a-long-name,köln=äöü,scale=0.1 n=1024", text, sizeof text);
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
      int characters = 0;
      for (const char *c = strncmp(line, "\033[K", 3) ? line : line + 3; *c; c++) characters += (*c & 0xC0) != 0x80;
      if (characters > longest) longest = characters;
      cut += characters == columns - 1;
    }
    if (longest >= columns || (columns <= 80 && !cut)) fail_msg("%d characters in %d columns", longest, columns);
  }
}
