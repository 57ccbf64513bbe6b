/* Runs the real binary with a temporary HOME and reads its output. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_COMMAND_H
#define WLM_TESTS_SUPPORT_COMMAND_H

#include <sys/types.h>

#include "support/asserts.h"
#include "support/folder.h"

/* From here on this process and those it starts find their databases below the folder, and no template folder. */
void home_enter(const test_folder *folder);
int home_begin(void **state); /* folder_begin and that, for cmocka; ends with folder_end */

typedef struct command {
  pid_t process;
  char out_path[320], err_path[320];
  int code; /* exit code, or minus the signal that ended it */
  char *out, *err;
} command;

/* Starts argv[0] with its output into files of the folder. */
void command_start(command *c, const test_folder *folder, const char *const argv[]);
void command_wait(command *c); /* fills code, out and err */
void command_release(command *c);

/* The text of a file that may still be written; free(). */
char *text_of(const char *path);
/* Lines of the text in which the part stands. */
int64_t count_lines(const char *text, const char *part);
/* A copy of a line, the first being 0, without its newline; free(). */
char *line_of(const char *text, int64_t index);

/* command_run(&c, &folder, "stats", "a.mtx") */
#define command_begin(c, folder, ...) command_start(c, folder, (const char *const[]){WLM_COMMAND, __VA_ARGS__, NULL})
#define command_run(c, folder, ...)        \
  do {                                     \
    command_begin(c, folder, __VA_ARGS__); \
    command_wait(c);                       \
  } while (0)
/* Runs, and fails the test unless it exits with the code. */
#define command_expect(c, folder, expected, ...)                                                                \
  do {                                                                                                          \
    command_run(c, folder, __VA_ARGS__);                                                                        \
    if ((c)->code != (expected))                                                                                \
      fail_msg("%s: exit code %d, expected %d\n%s\n%s", #__VA_ARGS__, (c)->code, expected, (c)->out, (c)->err); \
  } while (0)

/* SQLite knows JSON. */
int json_is_valid(const char *text);
/* The value at a path, "$.runs[0].n", as text; NULL where there is none; free(). */
char *json_at(const char *text, const char *path);
double json_number_at(const char *text, const char *path); /* not a number where there is none */
void assert_json_at(const char *text, const char *path, const char *expected);

#endif
