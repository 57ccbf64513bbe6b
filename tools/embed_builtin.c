/* Build tool: writes the built-in kernels, with which the library computes sums in f32 where there is no compiler, as
 * an exported library is written (exported/write.h): C for the host, and PTX for any GPU from compute capability 8.0
 * on, if there is NVRTC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "exported/write.h"
#include "generator/generator.h"
#include "runtime/cuda/nvrtc.h"

/* Variants that are right for every shape, and never the worst choice. */
static const struct target {
  wlmi_limits limits;
  int has_values; /* 0 = kernels with values and without */
  const char *variant, *name;
} targets[] = {
    {{.target = WLMI_TARGET_HOST, .processors = 1, .any_width = 1}, 0, "host_row/rows=128,tile=64", "host_builtin"},
    {{.target = WLMI_TARGET_CUDA, .arch = 80, .threads_per_block = 1024, .shared_bytes = 99 << 10, .processors = 108},
     1,
     "row_crc/cf=1,rows=4",
     "row_crc/cf=1,rows=4"}};
enum { TARGETS = sizeof targets / sizeof *targets, KERNELS = 4 };

/* The tool has the library's objects and not yet the tables that it makes. */
const wlmi_exported wlmi_exported_tables;

static wlmi_exported_kernel kernels[TARGETS][KERNELS];
static wlmi_pass passes[TARGETS * KERNELS];
static wlmi_exported_source sources[TARGETS * KERNELS];
static int64_t count; /* of passes and sources */

/* NVRTC writes the newest PTX version it knows, which an older driver refuses, whatever the text uses. These
 * kernels use nothing younger than the PTX of CUDA 12.0, the oldest driver that will do. */
static void lower_version(char *ptx) {
  static const char oldest[] = "8.0";
  char *version = strstr(ptx, "\n.version ");
  if (!version) return;
  version += strlen("\n.version ");
  if (strspn(version, "0123456789.") == strlen(oldest) && strncmp(version, oldest, strlen(oldest)) > 0)
    memcpy(version, oldest, strlen(oldest));
}

static wlm_status compile(wlmi_exported_source *source) {
  const wlmi_program *program = &source->program;
  if (source->limits.target == WLMI_TARGET_HOST) return WLM_OK;
  source->is_ptx = 1;
  WLM_CHECK(wlmi_nvrtc_compile(program->source, program->variant, source->limits.arch, 1, &source->data, &source->size,
                               NULL));
  lower_version(source->data);
  return WLM_OK;
}

static wlm_status add_kernel(wlmi_generator *generator, const struct target *target, int has_values,
                             wlm_index rowptr_type, wlmi_exported_kernel *kernel) {
  wlmi_exported_source *source = &sources[count];
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec;
  problem.n = 64;
  csr.rowptr_type = rowptr_type;
  if (has_values) csr.values = &csr; /* any: there are values */
  WLM_CHECK(wlmi_spec_make(&problem, &csr, &spec));
  source->limits = target->limits;
  WLM_CHECK(wlmi_generator_emit(generator, target->variant, &spec, &target->limits, &source->program));
  const wlmi_program *p = &source->program;
  if (p->pass_count != 1) return wlmi_fail(WLM_ERR_TEMPLATE, "%s has %d passes", p->variant, p->pass_count);
  *kernel = (wlmi_exported_kernel){.spec = wlmi_exported_builtin_id(&spec),
                                   .pass_count = 1,
                                   .deterministic = 1,
                                   .uses_b = 1,
                                   .passes = {(uint16_t)count},
                                   .workspace = p->workspace,
                                   .prepared = p->prepared,
                                   .name = target->name,
                                   .split = p->split,
                                   .image = count};
  passes[count++] = p->passes[0];
  return compile(source);
}

static wlm_status write_all(const char *folder) {
  wlmi_exported_target rows[TARGETS];
  wlmi_exported tables = {.passes = passes, .targets = rows};
  const wlmi_families none = {0};
  wlmi_text objects = {0};
  wlmi_generator *generator;
  int major, minor;
  wlm_status status = wlmi_generator_create(NULL, &generator);
  const int has_nvrtc = wlmi_nvrtc_version(&major, &minor) == WLM_OK;
  for (int t = 0; status == WLM_OK && t < (has_nvrtc ? TARGETS : 1); t++) {
    const struct target *target = &targets[t];
    wlmi_exported_target *row = &rows[tables.target_count++];
    *row = (wlmi_exported_target){.target = target->limits.target,
                                  .arch = target->limits.arch,
                                  .is_ptx = target->limits.target == WLMI_TARGET_CUDA,
                                  .kernels = kernels[t]};
    for (int values = target->has_values; values < 2; values++)
      for (int type = WLM_I32; type <= WLM_I64; type++)
        WLM_TRY(add_kernel(generator, target, values, (wlm_index)type, &kernels[t][row->kernel_count++]));
  }
  tables.pass_count = count;
  if (status == WLM_OK) status = wlmi_exported_write(&tables, &none, sources, count, folder, &objects);
done:
  wlmi_text_release(&objects);
  for (int64_t i = 0; i < count; i++) {
    wlmi_free(sources[i].data);
    wlmi_program_release(&sources[i].program);
  }
  wlmi_generator_destroy(generator);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: embed_builtin FOLDER\n");
    return EXIT_FAILURE;
  }
  const wlm_status status = write_all(argv[1]);
  if (status == WLM_OK) return EXIT_SUCCESS;
  fprintf(stderr, "embed_builtin: %s: %s\n", wlm_status_message(status), wlm_error_detail());
  return EXIT_FAILURE;
}
