/* A fresh folder, measurements to store, and small things on files, for the tests of db/. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_DB_FIXTURE_H
#define WLM_TESTS_SUPPORT_DB_FIXTURE_H

#include "db/store.h"

/* mkdtemp under $TMPDIR or /tmp; removed with all that is in it by folder_remove. */
typedef struct test_folder {
  char path[256];
  char file[300]; /* a name inside, from folder_file */
} test_folder;
void folder_make(test_folder *folder);
void folder_remove(test_folder *folder);
const char *folder_file(test_folder *folder, const char *name); /* folder->file = path/name */

/* The i-th of a family of valid measurements, no two with equal content; every seventh one failed. Its strings live
 * until the next call that uses the same slot, slot = i % 64. */
wlm_measurement_record sample_measurement(int64_t i);

unsigned char *read_whole(const char *path, size_t *size); /* free() */
void write_whole(const char *path, const void *data, size_t size);

/* splitmix64, for tests that draw */
uint64_t draw(uint64_t *state);

#define assert_status(expected, call)                                                                        \
  do {                                                                                                       \
    wlm_status got_ = (call);                                                                                \
    if (got_ != (expected))                                                                                  \
      fail_msg("%s: got %s (%s), expected %s", #call, wlm_status_name(got_), wlm_error_detail(), #expected); \
  } while (0)
#define assert_contains(text, part)                                                   \
  do {                                                                                \
    if (!strstr((text), (part))) fail_msg("\"%s\" is not in \"%s\"", (part), (text)); \
  } while (0)

#endif
