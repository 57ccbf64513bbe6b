/* The example of docs/adding-a-family.md works: the test extracts its two files to a folder, emits every variant,
 * compiles it with NVRTC if there is one, and runs it as fibers against float64. */
#include <omp.h>

#include "runtime/cuda/nvrtc.h"
#include "simt/shim/simt_device.h"
#include "support/covering.h"
#include "support/emit_fixture.h"
#include "support/kernel_check.h"
#include "support/test.h"

/* The first fenced block of this language behind `heading`; free(). */
static char *block_of(const char *page, const char *heading, const char *fence) {
  const char *begin = strstr(page, heading);
  begin = begin ? strstr(begin, fence) : NULL;
  const char *end = begin ? strstr(begin + strlen(fence), "\n```") : NULL;
  if (!end) fail_msg("the page has no block %s behind '%s'", fence, heading);
  begin += strlen(fence);
  return strndup(begin, (size_t)(end + 1 - begin));
}

static char *page_text(void) {
  size_t size;
  FREED char *raw = (char *)read_whole(WLM_SOURCE_DIR "/docs/adding-a-family.md", &size);
  char *page = strndup(raw, size);
  return page;
}

static void check_compiles(const wlmi_program *program) {
  int major, minor;
  size_t size;
  if (wlmi_nvrtc_version(&major, &minor) != WLM_OK) return; /* tests/nvrtc reports that NVRTC is missing */
  WLM_FREED GET(void *, cubin, wlmi_nvrtc_compile(program->source, "emitted", 90, 0, &cubin, &size, NULL));
}

TEST(test_the_example_works) {
  test_folder folder;
  FREED char *page = page_text();
  FREED char *family = block_of(page, "## `family.lua`", "```lua\n");
  FREED char *kernel = block_of(page, "## `kernel.cu.in`", "```c\n");
  folder_make(&folder);
  emit_write(&folder, "row_plain", "family.lua", family);
  emit_write(&folder, "row_plain", "kernel.cu.in", kernel);
  OWN(wlmi_generator, generator, wlmi_generator_create(folder.path, &generator));
  folder_remove(&folder);
  OWN(wlmi_device, device, simt_device_open(&device));
  HOLD(covering, set, covering_make(generator, &device->info.limits, 1, 0, &set));
  int64_t checked = 0;
  for (int64_t i = 0; i < set.count; i++) {
    wlmi_program program;
    if (!set.entries[i].first) continue;
    assert_memory_equal(set.entries[i].variant, "row_plain/", 10);
    assert_status(WLM_OK, wlmi_generator_emit(generator, set.entries[i].variant, &set.entries[i].spec,
                                              &device->info.limits, &program));
    check_compiles(&program);
    const kernel_check check = {.device = device, .spec = &set.entries[i].spec, .runs = 1, .seed = 1};
    assert_status(WLM_OK, kernel_check_program(&check, &program));
    wlmi_program_release(&program);
    checked++;
  }
  assert_int_equal(checked, 3); /* rows = 1, 2, 4 */
}

int main(void) {
  omp_set_num_threads(1);
  return test_run();
}
