/* User-defined expressions with NVRTC: every function that the parser accepts exists for every architecture, and
 * compile errors are reported at their position in the user's text. */
#include "support/emit_fixture.h"
#include "support/expressions.h"
#include "support/test.h"

#include "runtime/cuda/nvrtc.h"

static const char variant[] = "row_crc/cf=1,rows=4";

TEST(every_function) {
  static const int architectures[] = {80, 90, 100};
  const wlmi_spec spec = expressions_all_functions(32);
  test_needs_nvrtc();
  HOLD(wlmi_program, program, wlmi_generator_emit(emit_generator, variant, &spec, &emit_cuda, &program));
  for (int i = 0; i < 3; i++) {
    WLM_FREED void *cubin = NULL;
    size_t size;
    HELD(wlmi_text) log = {0};
    if (wlmi_nvrtc_compile(program.source, program.variant, architectures[i], 0, &cubin, &size, &log) != WLM_OK)
      fail_msg("sm_%d: %s", architectures[i], wlm_error_detail());
  }
}

TEST(errors_have_their_position) {
  void *cubin;
  size_t size;
  test_needs_nvrtc();
  FREED char *broken = expressions_broken(emit_generator, variant, &emit_cuda);
  assert_fails(WLM_ERR_COMPILE, wlmi_nvrtc_compile(broken, variant, 90, 0, &cubin, &size, NULL), "op:activation(1)");
}

GROUP(emit_begin, emit_end)
