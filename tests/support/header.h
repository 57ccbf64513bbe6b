/* The functions that the public headers declare, read from their text. Include after cmocka. */
#pragma once

enum { HEADER_MOST = 256, HEADER_NAME = 64 };

typedef struct header_functions {
  char names[HEADER_MOST][HEADER_NAME]; /* sorted */
  int count;
} header_functions;

/* Reads the names behind WLM_API in the headers of include/warploom/ in the source folder. */
void header_read(const char *source, header_functions *functions);
