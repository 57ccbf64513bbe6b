/* Runs the real binary with a temporary HOME and reads its output. Include after cmocka. */
#pragma once

#include <sys/types.h>

#include "support/asserts.h"
#include "support/folder.h"

/* From here on this process and its children find databases below the folder, and no template folder. */
void home_enter(const test_folder *folder);
int home_begin(void **state); /* a setup of cmocka: folder_begin and home_enter; use folder_end as the teardown */

typedef struct command {
  pid_t process;
  char out_path[320], err_path[320];
  int code;        /* the exit code, or minus the signal that ended the process */
  char *out, *err; /* they stay until the program ends */
} command;

/* Starts argv[0]; its output goes to files of the folder. */
void command_start(command *c, const test_folder *folder, const char *const argv[]);
void command_wait(command *c); /* waits for the end; sets code, out and err */

/* Reads a file to which a process may still be writing; free(). */
char *text_of(const char *path);
/* The number of lines that contain the part. */
int64_t count_lines(const char *text, const char *part);
/* A copy of line `index`, counted from 0, without its newline; free(). */
char *line_of(const char *text, int64_t index);

/* command_run(&c, &folder, "stats", "a.mtx") */
#define command_begin(c, folder, ...) command_start(c, folder, (const char *const[]){WLM_COMMAND, __VA_ARGS__, NULL})
#define command_run(c, folder, ...)        \
  do {                                     \
    command_begin(c, folder, __VA_ARGS__); \
    command_wait(c);                       \
  } while (0)
/* Runs the command in the test's folder; fails the test if its exit code differs: command c = RUN(0, "stats", "a.mtx");
 */
#define RUN(expected, ...) \
  command_checked((const char *const[]){WLM_COMMAND, __VA_ARGS__, NULL}, expected, #__VA_ARGS__, __FILE__, __LINE__)
command command_checked(const char *const argv[], int expected, const char *words, const char *file, int line);

/* The first number that the statement gives in the database file, or 0; text is its ?1, or NULL. */
int64_t database_integer(const char *database, const char *sql, const char *text);
/* Makes all measurements exact. A command measures noisy candidates again, so on a busy machine it would measure others
 * than on a quiet one. */
void forget_noise(const char *database);

/* Whether the text is valid JSON (by SQLite's parser). */
int json_is_valid(const char *text);
/* The value at a path such as "$.runs[0].n", as text; NULL if there is none; free(). */
char *json_at(const char *text, const char *path);
double json_number_at(const char *text, const char *path); /* NaN if there is none */
void assert_json_at(const char *text, const char *path, const char *expected);
/* Of several paths: assert_json(c.out, {"$.n", "32"}, {"$.device", "host"}); */
#define assert_json(text, ...)                                       \
  do {                                                               \
    const char *const fields_[][2] = {__VA_ARGS__};                  \
    for (size_t i_ = 0; i_ < sizeof fields_ / sizeof *fields_; i_++) \
      assert_json_at(text, fields_[i_][0], fields_[i_][1]);          \
  } while (0)
