/* The Markdown files of the tree name files that exist, in links and in `code`, and their lines fit 100 columns.
 * README's figures stand in docs/performance.md. */
#include <glob.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "support/test.h"

enum { COLUMNS = 100 };

static int faults, names;

/* Whether a file of this name exists, relative to the folder of the document or to the root. */
static int exists(const char *folder, const char *name, size_t size) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s%.*s", WLM_SOURCE_DIR, folder, (int)size, name);
  return !access(path, R_OK);
}

static void check_name(const char *document, const char *folder, const char *name, size_t size) {
  names++;
  if (exists(folder, name, size)) return;
  faults++;
  print_error("%s names %.*s, which does not exist\n", document, (int)size, name);
}

/* Checks [text](name) and ![text](name#section). Names with a colon are addresses of other sites. */
static void check_links(const char *document, const char *folder, const char *line) {
  for (const char *at = line; (at = strstr(at, "](")) != NULL;) {
    at += 2;
    const size_t whole = strcspn(at, ")"), size = strcspn(at, ")#");
    if (size && !memchr(at, ':', whole)) check_name(document, folder, at, size);
    at += whole;
  }
}

/* Whether the code names a file: it begins with a folder of the tree, and ends with a file name or a slash. */
static int is_path(const char *code, size_t size) {
  static const char *const rooms[] = {".ci/",     "bench/",    "cli/",      "cmake/",     "core/",    "db/",
                                      "docs/",    "examples/", "exported/", "generator/", "include/", "python/",
                                      "runtime/", "select/",   "tests/",    "templates/", "tools/",   "tuner/"};
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  const char *slash = memchr(code, '/', size);
  if (!slash || strspn(code, allowed) < size) return 0;
  const char *last = code + size - 1;
  if (*last != '/' && !memchr(slash, '.', (size_t)(last - slash))) return 0;
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
    if (!strncmp(code, rooms[i], strlen(rooms[i]))) return 1;
  return 0;
}

static void check_code(const char *document, const char *line) {
  for (const char *at = line; (at = strchr(at, '`')) != NULL;) {
    const char *end = strchr(++at, '`');
    if (!end) return;
    if (is_path(at, (size_t)(end - at))) check_name(document, "", at, (size_t)(end - at));
    at = end + 1;
  }
}

static void check_document(const char *document, const char *folder, int has_history) {
  char path[1024], line[4096];
  int in_block = 0;
  snprintf(path, sizeof path, "%s/%s", WLM_SOURCE_DIR, document);
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("%s cannot be read", path);
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    line[strcspn(line, "\n")] = 0;
    in_block ^= !strncmp(line, "```", 3);
    if (in_block) continue;
    check_links(document, folder, line);
    if (!has_history) check_code(document, line);
    if (*line == '|' || strlen(line) <= COLUMNS) continue;
    faults++;
    print_error("%s:%d has more than %d columns\n", document, number, COLUMNS);
  }
  fclose(file);
}

TEST(documents_name_existing_files) {
  glob_t docs;
  assert_int_equal(glob(WLM_SOURCE_DIR "/docs/*.md", 0, NULL, &docs), 0);
  check_document("README.md", "", 0);
  check_document("CONTRIBUTING.md", "", 0);
  check_document("SECURITY.md", "", 0);
  check_document("examples/README.md", "examples/", 0);
  check_document("CHANGELOG.md", "", 1); /* also names files that no longer exist */
  for (size_t i = 0; i < docs.gl_pathc; i++) check_document(docs.gl_pathv[i] + strlen(WLM_SOURCE_DIR "/"), "docs/", 0);
  print_message("%d names\n", names);
  assert_int_equal(faults, 0);
  assert_true(names > 60);
  globfree(&docs);
}

/* What README says as "2.38 times" stands in docs/performance.md as "2.38x", beside the file that it comes from. */
TEST(figures_of_readme_have_a_source) {
  int figures = 0;
  char *readme = NULL, *performance = NULL;
  GET(size_t, size, wlmi_file_read(WLM_SOURCE_DIR "/README.md", &readme, &size));
  assert_status(WLM_OK, wlmi_file_read(WLM_SOURCE_DIR "/docs/performance.md", &performance, &size));
  for (const char *at = readme; (at = strstr(at, " times")); at++) {
    char figure[32];
    const char *end = at, *begin;
    while (end > readme && end[-1] == '*') end--;
    for (begin = end; begin > readme && strchr("0123456789.", begin[-1]);) begin--;
    if (begin == end) continue;
    snprintf(figure, sizeof figure, "%.*sx", (int)(end - begin), begin);
    if (!strstr(performance, figure)) fail_msg("README.md: %s is not in docs/performance.md", figure);
    figures++;
  }
  assert_true(figures >= 2);
  wlmi_free(readme);
  wlmi_free(performance);
}
