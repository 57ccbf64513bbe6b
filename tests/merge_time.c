/* Merges ten databases of 50,000 measurements each and prints the seconds that this took. Not a test: the target
 * merge_time is built only by its name. */
#include <time.h>

#include "support/db_fixture.h"
#include "support/test.h"
#include "tuner/timing.h"

enum { FILES = 10, SAMPLES = 50000 };

TEST(merge) {
  char paths[FILES][300];
  const char *sources[FILES];
  wlmi_text conflicts = {0};
  int64_t measurements;
  for (int i = 0; i < FILES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d.db", i);
    snprintf(paths[i], sizeof paths[i], "%s", folder_file(&folder, name));
    put_samples_from(sources[i] = paths[i], (int64_t)i * SAMPLES, SAMPLES);
  }
  const double wall = wlmi_seconds();
  const clock_t cpu = clock();
  assert_status(WLM_OK,
                wlmi_store_merge_files(sources, FILES, folder_file(&folder, "merged.db"), &conflicts, &measurements));
  const double cpu_seconds = (double)(clock() - cpu) / CLOCKS_PER_SEC, seconds = wlmi_seconds() - wall;
  assert_int_equal(measurements, FILES * SAMPLES);
  assert_int_equal(conflicts.size, 0);
  printf("{\"files\":%d,\"measurements\":%lld,\"seconds\":%.2f,\"cpu_seconds\":%.2f}\n", FILES, (long long)measurements,
         seconds, cpu_seconds);
}

GROUP(folder_begin, folder_end)
