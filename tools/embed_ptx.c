/* Build tool: writes the C file that holds the built-in kernels (runtime/cuda/builtin.h), as PTX for any GPU from
 * compute capability 8.0 on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "generator/generator.h"
#include "runtime/cuda/builtin.h"
#include "runtime/cuda/nvrtc.h"

static const char variant[] = "row_crc/cf=1,rows=4"; /* right for every shape, and never the worst choice */
static const wlm_index rowptr_types[] = {WLM_I32, WLM_I64};
static const wlmi_limits limits = {
    .target = WLMI_TARGET_CUDA, .arch = 80, .threads_per_block = 1024, .shared_bytes = 99 << 10, .processors = 108};

/* The tool has the library's objects and not yet the table that it makes. */
const struct wlmi_cuda_builtin wlmi_cuda_builtins[1];
const int wlmi_cuda_builtin_count = 0;

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

static void write_text(FILE *file, const char *text) {
  while (*text) {
    size_t line = strcspn(text, "\n");
    fputs("        \"", file);
    for (size_t i = 0; i < line; i++) {
      if (text[i] == '\\' || text[i] == '"') fputc('\\', file);
      fputc(text[i] == '\t' ? ' ' : text[i], file);
    }
    fputs("\\n\"\n", file);
    text += line + (text[line] == '\n');
  }
}

static void write_bytes(FILE *file, const char *name, const wlmi_bytes *b) {
  fprintf(file, "        .%s = {%lld, %lld, %lld, %lld, %lld, %lld, %lld},\n", name, (long long)b->one,
          (long long)b->rows, (long long)b->nnz, (long long)b->n, (long long)b->blocks, (long long)b->rows_n,
          (long long)b->blocks_n);
}

static void write_entry(FILE *file, const char *key, const wlmi_program *program, const char *ptx) {
  fprintf(file, "    {.key = \"%s\",\n     .program = {\n        .variant = \"%s\",\n", key, program->variant);
  fprintf(file, "        .pass_count = %d,\n        .passes = {\n", program->pass_count);
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *p = &program->passes[i];
    fprintf(file,
            "            {.kernel = \"%s\", .when = %d, .units = %d, .axis = %d, .units_per_block = %lld,\n"
            "             .columns_per_block = %lld, .threads = %d, .shared_bytes = %lld},\n",
            p->kernel, (int)p->when, (int)p->units, (int)p->axis, (long long)p->units_per_block,
            (long long)p->columns_per_block, p->threads, (long long)p->shared_bytes);
  }
  fprintf(file, "        },\n");
  write_bytes(file, "workspace", &program->workspace);
  write_bytes(file, "prepared", &program->prepared);
  fprintf(file,
          "        .max_registers = %d, .deterministic = %d, .uses_b = %d, .split = \"%s\"},\n     "
          ".ptx =\n",
          program->max_registers, program->deterministic, program->uses_b, program->split);
  write_text(file, ptx);
  fprintf(file, "    },\n");
}

static wlm_status add_kernel(FILE *file, wlmi_generator *generator, wlm_index rowptr_type) {
  wlm_problem problem = WLM_PROBLEM_INIT;
  wlm_csr csr = WLM_CSR_INIT;
  wlmi_spec spec;
  wlmi_program program = {0};
  char key[WLMI_SPEC_KEY], *ptx = NULL;
  size_t size;
  wlm_status status;
  problem.n = 32;
  csr.rowptr_type = rowptr_type;
  csr.values = &csr; /* any: there are values */
  WLM_TRY(wlmi_spec_make(&problem, &csr, &spec));
  wlmi_spec_key(&spec, key);
  WLM_TRY(wlmi_generator_emit(generator, variant, &spec, &limits, &program));
  WLM_TRY(wlmi_nvrtc_ptx(program.source, program.variant, limits.arch, &ptx, &size));
  lower_version(ptx);
  write_entry(file, key, &program, ptx);
done:
  wlmi_free(ptx);
  wlmi_program_release(&program);
  return status;
}

static wlm_status write_table(FILE *file) {
  const int count = sizeof rowptr_types / sizeof *rowptr_types;
  wlmi_generator *generator;
  wlm_status status = wlmi_generator_create(NULL, &generator);
  if (status != WLM_OK) return status;
  fprintf(file, "#include \"runtime/cuda/builtin.h\"\n\nconst int wlmi_cuda_builtin_count = %d;\n", count);
  fprintf(file, "const struct wlmi_cuda_builtin wlmi_cuda_builtins[] = {\n");
  for (int i = 0; i < count; i++) WLM_TRY(add_kernel(file, generator, rowptr_types[i]));
  fprintf(file, "};\n");
done:
  wlmi_generator_destroy(generator);
  return status;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;
  if (!file) {
    fprintf(stderr, "usage: embed_ptx OUT.c\n");
    return EXIT_FAILURE;
  }
  wlm_status status = write_table(file);
  int lost = ferror(file);
  lost |= fclose(file);
  if (lost && status == WLM_OK) status = wlmi_fail(WLM_ERR_IO, "%s cannot be written", argv[1]);
  if (status == WLM_OK) return EXIT_SUCCESS;
  fprintf(stderr, "embed_ptx: %s: %s\n", wlm_status_message(status), wlm_error_detail());
  remove(argv[1]);
  return EXIT_FAILURE;
}
