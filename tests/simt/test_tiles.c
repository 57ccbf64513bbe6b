/* Tile sizes that other tests do not reach. row_block divides a block with very many non-zeros into several tiles. No
 * matrix of the tests is that large, so the test makes tiles small by changing one number in the emitted text. On a
 * device with many multiprocessors a small matrix is divided among as many blocks, so merge_path's tiles have few
 * items. Where n fills a part of a block of row_crc, the block walks its rows several times. */
#include <omp.h>

#include "simt/shim/simt_device.h"
#include "support/kernel_check.h"
#include "support/test.h"

typedef struct tile_case {
  const char *variant;
  int64_t n;
  wlm_reduce reduce;
} tile_case;

static void order(void *user, int run) { simt_device_seed(user, (uint64_t)run + 1); }

/* Checks each kernel, emitted for this many multiprocessors; the test replaces the number `large` in its text by
 * `small`, if `large` is not NULL. */
static void check_cases(const tile_case *cases, size_t count, int processors, const char *large, const char *small) {
  omp_set_num_threads(1);
  OWN(wlmi_generator, generator, wlmi_generator_create(NULL, &generator));
  OWN(wlmi_device, device, simt_device_open(&device));
  wlmi_limits limits = device->info.limits;
  limits.processors = processors;
  for (size_t i = 0; i < count; i++) {
    wlm_problem problem = PROBLEM(.n = cases[i].n, .reduce = cases[i].reduce);
    wlm_csr csr = CSR(.values = &csr);
    int told = 0;
    GET(wlmi_spec, spec, wlmi_spec_make(&problem, &csr, &spec));
    HOLD(wlmi_program, program, wlmi_generator_emit(generator, cases[i].variant, &spec, &limits, &program));
    for (char *at = program.source; large && (at = strstr(at, large)) != NULL; told++) memcpy(at, small, strlen(small));
    assert_true(told > 0 || !large);
    assert_status(WLM_OK, kernel_check_program(&(kernel_check){device, &spec, 2, order, device, i + 1}, &program));
  }
}

TEST(test_several_tiles_a_block) {
  static const tile_case cases[] = {
      {"row_block/threads=128,rows=4,lanes=4,vector=4,batch=8", 16, WLM_SUM},
      {"row_block/threads=128,rows=16,lanes=8,vector=4,batch=4", 32, WLM_MEAN},
      {"row_block/threads=256,rows=64,lanes=32,vector=1,batch=8", 33, WLM_MAX},
      {"row_block/threads=128,rows=64,lanes=16,vector=4,batch=4", 100, WLM_PROD},
  };
  check_cases(cases, sizeof cases / sizeof *cases, 0, "1048576", "     64");
}

TEST(test_few_items_a_tile) {
  static const tile_case cases[] = {
      {"merge_path/items=128,lanes=8,vector=4,batch=8,prepared=1", 32, WLM_SUM},
      {"merge_path/items=2048,lanes=4,vector=4,batch=4,prepared=0", 16, WLM_MEAN},
      {"merge_path/items=512,lanes=32,vector=1,batch=4,prepared=1", 33, WLM_MAX},
      {"merge_path/items=256,lanes=16,vector=4,batch=8,prepared=0", 100, WLM_PROD},
      {"merge_path/items=1024,lanes=1,vector=1,batch=8,prepared=0", 1, WLM_SUM},
      {"merge_path/items=256,lanes=1,vector=2,batch=4,prepared=1", 2, WLM_MIN},
      {"merge_path/items=512,lanes=2,vector=4,batch=4,prepared=0", 8, WLM_MEAN},
  };
  check_cases(cases, sizeof cases / sizeof *cases, 132, NULL, NULL);
}

TEST(test_several_stages_a_block) {
  static const tile_case cases[] = {
      {"row_stage/threads=128,lanes=1,vector=1,batch=4", 1, WLM_SUM},
      {"row_stage/threads=128,lanes=16,vector=4,batch=4", 8, WLM_MAX},
      {"row_stage/threads=256,lanes=4,vector=2,batch=8", 2, WLM_MEAN},
      {"row_stage/threads=128,lanes=2,vector=1,batch=4", 3, WLM_PROD},
      {"path_stage/threads=128,vector=1,batch=8,prepared=0", 1, WLM_SUM},
      {"path_stage/threads=256,vector=2,batch=4,prepared=1", 2, WLM_MIN},
      {"path_stage/threads=128,vector=4,batch=8,prepared=0", 8, WLM_MEAN},
      {"path_stage/threads=128,vector=1,batch=4,prepared=1", 3, WLM_PROD},
  };
  check_cases(cases, sizeof cases / sizeof *cases, 0, NULL, NULL);
}

TEST(test_parts_of_a_block) {
  static const tile_case cases[] = {
      {"row_crc/cf=8,rows=4", 224, WLM_SUM},
      {"row_crc/cf=4,rows=8", 96, WLM_MAX},
  };
  check_cases(cases, sizeof cases / sizeof *cases, 0, NULL, NULL);
}
