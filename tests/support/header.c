#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/header.h"
#include "support/own.h"

static int is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Replaces comments and preprocessor lines by blanks. */
static void blank_out(char *text) {
  for (char *at = text; *at; at++) {
    const int comment = !strncmp(at, "/*", 2), directive = *at == '#' && (at == text || at[-1] == '\n');
    if (!comment && !directive) continue;
    const char *end = comment ? strstr(at, "*/") + 2 : at;
    if (directive)
      while (*end && (*end != '\n' || end[-1] == '\\')) end++;
    while (at < end) *at++ = ' ';
    at--;
  }
}

/* Adds the name before the first parenthesis behind each WLM_API. */
static void add_functions(char *text, header_functions *functions) {
  static const char mark[] = "WLM_API";
  blank_out(text);
  for (char *at = strstr(text, mark); at; at = strstr(at, mark)) {
    at += strlen(mark);
    const char *end = strchr(at, '('), *begin;
    assert_non_null(end);
    for (begin = end; begin > at && is_name(begin[-1]);) begin--;
    assert_true(functions->count < HEADER_MOST && end > begin && end - begin < HEADER_NAME);
    snprintf(functions->names[functions->count++], HEADER_NAME, "%.*s", (int)(end - begin), begin);
  }
}

static int compare(const void *a, const void *b) { return strcmp(a, b); }

void header_read(const char *source, header_functions *functions) {
  static const char *const headers[] = {"warploom.h", "warploom_attention.h", "warploom_message.h", "warploom_tune.h"};
  functions->count = 0;
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    char path[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/include/warploom/%s", source, headers[i]);
    FREED unsigned char *whole = read_whole(path, &size);
    FREED char *text = calloc(1, size + 1);
    assert_true(whole && text);
    memcpy(text, whole, size);
    add_functions(text, functions);
  }
  qsort(functions->names, (size_t)functions->count, sizeof *functions->names, compare);
}
