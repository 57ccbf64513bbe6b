/* The kernel archive: what was written is found again, a damaged or foreign file is refused, and one damaged kernel is
 * not given out. */
#include <sys/stat.h>

#include "core/base/memory.h"
#include "db/kernel_archive.h"
#include "support/folder.h"
#include "support/test.h"

enum { KERNELS = 200, LONGEST = 3000 };

static int64_t file_bytes;                    /* of the archive that was written last */
static unsigned char bytes[KERNELS][LONGEST]; /* of a kernel: some repeat, some are noise */

static wlmi_hash key_of(int i) { return wlmi_hash_bytes(&i, sizeof i); }
static size_t size_of(int i) { return (size_t)(i * 37 % LONGEST); }

/* Writes the kernels in the order of `first`, first + 1, ..., and each one twice. */
static const char *write_archive(const char *name, int first) {
  static wlmi_archived_kernel kernels[2 * KERNELS];
  for (int i = 0; i < 2 * KERNELS; i++) {
    const int k = (first + i) % KERNELS;
    for (int b = 0; b < LONGEST; b++)
      bytes[k][b] = k % 2 ? (unsigned char)(b % 7 + k) : (unsigned char)(k * 31 + b * b / 7);
    kernels[i] = (wlmi_archived_kernel){key_of(k), bytes[k], size_of(k)};
  }
  assert_status(WLM_OK, wlmi_kernel_archive_write(folder_file(&folder, name), kernels, 2 * KERNELS, &file_bytes));
  return folder.file;
}

TEST(kernels_are_found_again) {
  void *data;
  size_t size;
  GET(wlmi_kernel_archive *, archive, wlmi_kernel_archive_open(write_archive("whole", 0), 0, &archive));
  assert_int_equal(wlmi_kernel_archive_count(archive), KERNELS);
  for (int i = 0; i < KERNELS; i++) {
    assert_true(wlmi_kernel_archive_has(archive, key_of(i)));
    assert_status(WLM_OK, wlmi_kernel_archive_get(archive, key_of(i), &data, &size));
    assert_int_equal(size, size_of(i));
    assert_memory_equal(data, bytes[i], size);
    wlmi_free(data);
  }
  assert_false(wlmi_kernel_archive_has(archive, key_of(KERNELS)));
  assert_status(WLM_ERR_NOT_FOUND, wlmi_kernel_archive_get(archive, key_of(KERNELS), &data, &size));
  assert_null(data);
  assert_false(wlmi_kernel_archive_has(NULL, key_of(0)));
  assert_status(WLM_ERR_NOT_FOUND, wlmi_kernel_archive_get(NULL, key_of(0), &data, &size));
  wlmi_kernel_archive_close(archive);
  wlmi_kernel_archive_close(NULL);
}

TEST(the_same_kernels_give_the_same_bytes) {
  size_t size, size_again;
  FREED unsigned char *first = read_whole(write_archive("first", 0), &size);
  FREED unsigned char *again = read_whole(write_archive("again", 77), &size_again);
  size_t whole = 0;
  for (int i = 0; i < KERNELS; i++) whole += size_of(i);
  assert_int_equal(size, size_again);
  assert_int_equal(file_bytes, size);
  assert_memory_equal(first, again, size);
  assert_true(size < whole); /* repeated bytes are compressed */
}

TEST(an_empty_archive) {
  assert_status(WLM_OK, wlmi_kernel_archive_write(folder_file(&folder, "empty"), NULL, 0, NULL));
  OWN(wlmi_kernel_archive, archive, wlmi_kernel_archive_open(folder.file, 0, &archive));
  assert_int_equal(wlmi_kernel_archive_count(archive), 0);
  assert_false(wlmi_kernel_archive_has(archive, key_of(0)));
}

static void refused(wlm_status expected, const char *words) {
  wlmi_kernel_archive *archive = (wlmi_kernel_archive *)&archive;
  assert_status(expected, wlmi_kernel_archive_open(folder.file, 0, &archive));
  assert_null(archive);
  if (!strstr(wlm_error_detail(), words)) fail_msg("%s", wlm_error_detail());
  assert_non_null(strstr(wlm_error_detail(), folder.path));
}

TEST(other_files_are_refused) {
  size_t size;
  FREED unsigned char *whole = read_whole(write_archive("whole", 0), &size);
  folder_file(&folder, "none");
  refused(WLM_ERR_NOT_FOUND, "no such file");
  write_whole(folder_file(&folder, "short"), "wlmkern", 7);
  refused(WLM_ERR_DATABASE, "is no kernel archive");
  write_whole(folder_file(&folder, "other"), "SQLite format 3\0 and a few bytes more than a header has", 56);
  refused(WLM_ERR_DATABASE, "is no kernel archive");
  snprintf(folder.file, sizeof folder.file, "%s", folder.path);
  refused(WLM_ERR_DATABASE, "is not an ordinary file");
  whole[8]++; /* the version */
  write_whole(folder_file(&folder, "newer"), whole, size);
  refused(WLM_ERR_DATABASE_VERSION, "version 4, expected 3");
  whole[8] = 2;
  write_whole(folder_file(&folder, "older"), whole, size);
  refused(WLM_ERR_DATABASE_VERSION, "version 2, expected 3; build it again");
  whole[8] = 3;
  write_whole(folder_file(&folder, "cut"), whole, size - 1);
  refused(WLM_ERR_DATABASE, "is damaged");
  write_whole(folder_file(&folder, "longer"), whole, size);
  assert_int_equal(chmod(folder.file, 0666), 0);
  refused(WLM_ERR_IO, "others may write to it");
  OWN(wlmi_kernel_archive, archive, wlmi_kernel_archive_open(folder.file, 1, &archive)); /* as beside the library */
}

/* A changed byte anywhere is noticed: in header and index when the file is opened, in a kernel when it is asked for. */
TEST(changed_bytes_are_noticed) {
  enum { CHANGES = 300 };
  size_t size;
  FREED unsigned char *whole = read_whole(write_archive("whole", 0), &size);
  int refusals = 0, missing = 0;
  folder_file(&folder, "changed");
  for (int change = 0; change < CHANGES; change++) {
    OWNED(wlmi_kernel_archive) *archive = NULL;
    const size_t at = change < 48 ? (size_t)change : size * (size_t)change / CHANGES;
    whole[at] ^= 0x10;
    write_whole(folder.file, whole, size);
    whole[at] ^= 0x10;
    if (wlmi_kernel_archive_open(folder.file, 0, &archive) != WLM_OK) {
      refusals++;
      continue;
    }
    int lost = 0;
    for (int i = 0; i < KERNELS; i++) {
      WLM_FREED void *data = NULL;
      size_t found;
      if (wlmi_kernel_archive_get(archive, key_of(i), &data, &found) == WLM_OK)
        assert_memory_equal(data, bytes[i], found);
      else
        lost++;
    }
    assert_int_equal(lost, 1);
    missing += lost;
  }
  assert_true(refusals >= 48 && missing > 100);
  assert_int_equal(refusals + missing, CHANGES);
}

/* A file that is cut while it is open: the kernel counts as absent. */
TEST(a_file_that_shrinks) {
  void *data;
  size_t size;
  int found = 0;
  FREED unsigned char *whole = read_whole(write_archive("shrinks", 0), &size);
  OWN(wlmi_kernel_archive, archive, wlmi_kernel_archive_open(folder.file, 0, &archive));
  write_whole(folder.file, whole, size / 2);
  for (int i = 0; i < KERNELS; i++) {
    const wlm_status status = wlmi_kernel_archive_get(archive, key_of(i), &data, &size);
    found += status == WLM_OK;
    if (status != WLM_OK) assert_status(WLM_ERR_NOT_FOUND, status);
    wlmi_free(data);
  }
  assert_in_range(found, 1, KERNELS - 1);
}

static void quiet(void *user, wlm_log_level level, const char *message) { (void)user, (void)level, (void)message; }

GROUP(folder_begin, folder_end)

int main(void) {
  wlm_set_log(quiet, NULL, WLM_LOG_WARNING);
  return test_run();
}
