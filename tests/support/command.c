#include "support/command.h"

#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/own.h"

extern char **environ;

void home_enter(const test_folder *folder) {
  static const char *const places[][2] = {{"HOME", ""}, {"XDG_DATA_HOME", "/data"}, {"XDG_CACHE_HOME", "/cache"}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char path[320];
    snprintf(path, sizeof path, "%s%s", folder->path, places[i][1]);
    assert_int_equal(setenv(places[i][0], path, 1), 0);
  }
  unsetenv("WARPLOOM_TEMPLATES");
  setenv("OMP_WAIT_POLICY", "passive", 1); /* waiting threads of several processes would otherwise occupy the cores */
}

int home_begin(void **state) {
  folder_begin(state);
  home_enter(&folder);
  return 0;
}

void command_start(command *c, const test_folder *folder, const char *const argv[]) {
  static int count;
  posix_spawn_file_actions_t actions;
  *c = (command){0};
  snprintf(c->out_path, sizeof c->out_path, "%s/out-%d", folder->path, count);
  snprintf(c->err_path, sizeof c->err_path, "%s/err-%d", folder->path, count++);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, c->out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, c->err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_int_equal(posix_spawn(&c->process, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
}

char *text_of(const char *path) {
  size_t size = 0, got, capacity = 1 << 16;
  char *text = malloc(capacity);
  FILE *file = fopen(path, "r");
  while (file && (got = fread(text + size, 1, capacity - size - 1, file)) > 0) {
    size += got;
    if (capacity - size < 2) text = realloc(text, capacity *= 2);
  }
  text[size] = 0;
  if (file) fclose(file);
  return text;
}

/* The text of a file, which stays until the program ends. */
static char *kept_text(const char *path) {
  static char **kept;
  static size_t count;
  char *text = text_of(path);
  kept = realloc(kept, (count + 1) * sizeof *kept);
  return kept[count++] = realloc(text, strlen(text) + 1);
}

void command_wait(command *c) {
  int state;
  assert_int_equal(waitpid(c->process, &state, 0), c->process);
  c->code = WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
  c->out = kept_text(c->out_path);
  c->err = kept_text(c->err_path);
}

command command_checked(const char *const argv[], int expected, const char *words, const char *file, int line) {
  command c;
  command_start(&c, &folder, argv);
  command_wait(&c);
  if (c.code != expected) {
    print_error("%s: exit code %d, expected %d\n%s\n%s", words, c.code, expected, c.out, c.err);
    _fail(file, line);
  }
  return c;
}

int64_t count_lines(const char *text, const char *part) {
  int64_t count = 0;
  for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
    const char *found = strstr(text, part);
    count += found && found < end;
  }
  return count;
}

char *line_of(const char *text, int64_t index) {
  for (; index; index--) {
    text = strchr(text, '\n');
    assert_non_null(text);
    text++;
  }
  return strndup(text, strcspn(text, "\n"));
}

/* The first value of the first row as text; NULL if there is none; free(). Without a database (NULL) an error, as of
 * text that is no JSON, also gives NULL. */
static char *ask(const char *database, const char *sql, const char *first, const char *second) {
  sqlite3 *db;
  sqlite3_stmt *statement;
  char *answer = NULL;
  assert_int_equal(sqlite3_open(database ? database : ":memory:", &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
  if (first) assert_int_equal(sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC), SQLITE_OK);
  if (second) assert_int_equal(sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC), SQLITE_OK);
  const int result = sqlite3_step(statement);
  assert_true(result == SQLITE_ROW || result == SQLITE_DONE || !database);
  if (result == SQLITE_ROW && sqlite3_column_text(statement, 0))
    answer = strdup((const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
  return answer;
}

int64_t database_integer(const char *database, const char *sql, const char *text) {
  FREED char *answer = ask(database, sql, text, NULL);
  const int64_t value = answer ? strtoll(answer, NULL, 10) : 0;
  return value;
}

void forget_noise(const char *database) { free(ask(database, "UPDATE measurement SET spread_ps = 0", NULL, NULL)); }

int json_is_valid(const char *text) {
  FREED char *answer = ask(NULL, "SELECT json_valid(?1)", text, NULL);
  int valid = answer && !strcmp(answer, "1");
  return valid;
}

char *json_at(const char *text, const char *path) { return ask(NULL, "SELECT json_extract(?1, ?2)", text, path); }

double json_number_at(const char *text, const char *path) {
  FREED char *value = json_at(text, path);
  const double number = value ? atof(value) : (double)NAN;
  return number;
}

void assert_json_at(const char *text, const char *path, const char *expected) {
  FREED char *value = json_at(text, path);
  if (!value || strcmp(value, expected))
    fail_msg("%s is %s, expected %s in %s", path, value ? value : "absent", expected, text);
}
