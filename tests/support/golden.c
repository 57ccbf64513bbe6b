#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/folder.h"
#include "support/golden.h"
#include "support/own.h"

enum { MOST_SHOWN = 20 };

int golden_updates(void) { return getenv("WARPLOOM_UPDATE_GOLDEN") != NULL; }

typedef struct lines {
  char *text; /* the text, with newlines replaced by NUL */
  char **line;
  size_t count;
} lines;

static lines cut(const char *text, size_t size) {
  lines l = {.text = malloc(size + 1), .line = malloc((size + 1) * sizeof *l.line)};
  assert_true(l.text && l.line);
  if (size) memcpy(l.text, text, size);
  l.text[size] = 0;
  for (char *at = strtok(l.text, "\n"); at; at = strtok(NULL, "\n")) l.line[l.count++] = at;
  return l;
}

static void release(lines *l) {
  free(l->line);
  free(l->text);
}

static lines read_lines(const char *path) {
  if (access(path, R_OK)) return cut("", 0);
  size_t size;
  FREED unsigned char *whole = read_whole(path, &size);
  lines l = cut((const char *)whole, size);
  return l;
}

void golden_header(const char *path, char *header, size_t size) {
  lines l = read_lines(path);
  snprintf(header, size, "%s", l.count ? l.line[0] : "");
  release(&l);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void write_table(const char *path, const char *header, const lines *rows) {
  HELD(wlmi_text) whole = {0};
  wlmi_text_printf(&whole, "%s\n", header);
  for (size_t i = 0; i < rows->count; i++) wlmi_text_printf(&whole, "%s\n", rows->line[i]);
  assert_false(whole.failed);
  write_whole(path, whole.data, whole.size);
}

/* Both lists are sorted; the first line of `old` is the header. */
static int count_differences(const lines *old, const lines *rows) {
  int found = 0;
  for (size_t i = 1, j = 0; i < old->count || j < rows->count;) {
    const int order = i >= old->count ? 1 : j >= rows->count ? -1 : strcmp(old->line[i], rows->line[j]);
    if (order && found++ < MOST_SHOWN)
      fprintf(stderr, "%c %s\n", order < 0 ? '-' : '+', order < 0 ? old->line[i] : rows->line[j]);
    i += order <= 0;
    j += order >= 0;
  }
  if (found > MOST_SHOWN) fprintf(stderr, "and %d more\n", found - MOST_SHOWN);
  return found;
}

int golden_is(const char *path, const char *header, wlmi_text *rows) {
  lines now = cut(rows->data, rows->size), old = read_lines(path);
  qsort(now.line, now.count, sizeof *now.line, by_text);
  if (golden_updates()) write_table(path, header, &now);
  const int same = golden_updates() || (old.count && !strcmp(old.line[0], header) && !count_differences(&old, &now));
  release(&now);
  release(&old);
  return same;
}
