/* kernels list: the kernels of the measurements of a database, as this version emits and compiles them.
 * tools/same_kernels compares the lists of two versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "core/base/memory.h"
#include "core/problem/same_kernels.h"
#include "core/problem/spec_key.h"
#include "generator/generator.h"
#include "generator/kernel_hash.h"
#include "runtime/devices.h"

typedef struct listing {
  wlmi_generator *generator;
  wlmi_device *device; /* of the architecture of the last kernel; NULL = it cannot be compiled for here */
  const char *arch;
  wlmi_table *table;
  int64_t left_out; /* kernels that this version does not emit or this machine does not compile */
} listing;

/* Measurements of one kernel are neighbours. */
static int compare(const void *left, const void *right) {
  const wlmi_measurement_record *a = *(wlmi_measurement_record *const *)left;
  const wlmi_measurement_record *b = *(wlmi_measurement_record *const *)right;
  int order = strcmp(a->device.arch, b->device.arch);
  if (!order) order = (a->device.processors > b->device.processors) - (a->device.processors < b->device.processors);
  if (!order) order = strcmp(a->problem, b->problem);
  if (!order) order = (a->n > b->n) - (a->n < b->n);
  return order ? order : strcmp(a->variant, b->variant);
}

static void open_device(listing *l, const wlmi_device_record *device) {
  const int is_host = !strcmp(device->kind, "host");
  if (l->arch && !strcmp(l->arch, device->arch)) return;
  if (l->device) l->device->ops->close(l->device);
  l->device = NULL;
  l->arch = device->arch;
  const int arch = strncmp(device->arch, "sm_", 3) ? 0 : atoi(device->arch + 3);
  const wlm_status status = is_host ? wlmi_host_device_open(&l->device) : wlmi_compiling_device_open(arch, &l->device);
  if (status == WLM_OK && !strcmp(l->device->info.arch, device->arch)) return;
  if (status == WLM_OK) l->device->ops->close(l->device);
  l->device = NULL;
  wlmi_clear_error();
}

/* The hashes of a kernel and of its machine code. */
static wlm_status hash_kernel(const listing *l, const wlmi_measurement_record *record, char kernel[WLM_HASH_HEX],
                              char code[WLM_HASH_HEX]) {
  wlmi_program program = {0};
  wlmi_spec spec;
  void *image = NULL;
  size_t size;
  wlm_status status;
  wlmi_limits limits = l->device->info.limits;
  limits.processors = record->device.processors;
  WLM_TRY(wlmi_spec_from_key(record->problem, record->n, &spec));
  WLM_TRY(wlmi_generator_emit(l->generator, record->variant, &spec, &limits, &program));
  WLM_TRY(wlmi_kernel_hash(&program, kernel));
  WLM_TRY(l->device->ops->compile(l->device, &program, &image, &size));
  wlmi_hash_to_hex(wlmi_hash_bytes(image, size), code);
done:
  wlmi_free(image);
  wlmi_program_release(&program);
  return status;
}

/* records: those of one kernel. */
static wlm_status list_kernel(listing *l, wlmi_measurement_record *const *records, int64_t count) {
  const wlmi_measurement_record *record = records[0];
  char kernel[WLM_HASH_HEX], code[WLM_HASH_HEX];
  int measured = 0;
  open_device(l, &record->device);
  const wlm_status status = l->device ? hash_kernel(l, record, kernel, code) : WLM_ERR_NO_COMPILER;
  if (status == WLM_ERR_OUT_OF_MEMORY) return status;
  if (status != WLM_OK) {
    wlmi_clear_error();
    l->left_out++;
    return WLM_OK;
  }
  for (int64_t i = 0; i < count; i++)
    measured |= !strcmp(wlmi_same_kernel_now(records[i]->source_hash), wlmi_same_kernel_now(kernel));
  wlmi_table_add(l->table, "%s %d %s %jd %s %s %s", record->device.arch, record->device.processors, record->problem,
                 record->n, record->variant, kernel, code);
  wlmi_table_flag(l->table, measured);
  return WLM_OK;
}

static wlm_status list_all(listing *l, wlmi_measurement_record *records, int64_t count) {
  wlmi_measurement_record **sorted = NULL;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(count, sizeof *sorted, "measurements", (void **)&sorted));
  for (int64_t i = 0; i < count; i++) sorted[i] = &records[i];
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  for (int64_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && !compare(&sorted[begin], &sorted[end]);) end++;
    if (wlmi_interrupted()) WLM_TRY(wlmi_fail(WLM_ERR_CANCELLED, "the list was interrupted"));
    WLM_TRY(list_kernel(l, sorted + begin, end - begin));
  }
done:
  wlmi_free(sorted);
  return status;
}

wlm_status wlmi_cmd_kernels_list(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_table table;
  listing l = {.table = &table};
  wlmi_measurement_record *records = NULL;
  int64_t count = 0;
  wlm_store *store = NULL;
  wlmi_text path = {0};
  wlm_status status;
  wlmi_catch_interrupts();
  WLM_TRY(wlmi_cli_open_to_show(options, &path, &store));
  WLM_TRY(wlmi_store_load(store, NULL, &records, &count));
  WLM_TRY(wlmi_cli_generator(&l.generator));
  wlmi_table_begin(&table, "arch,processors,problem,n,variant,kernel,code,measured");
  status = list_all(&l, records, count);
  if (status != WLM_OK) {
    wlmi_table_release(&table);
    goto done;
  }
  wlmi_report_object(report, NULL);
  wlmi_report_members(report, "database=%s left_out=%jd", path.data, l.left_out);
  wlmi_report_table(report, "kernels", &table, 0);
done:
  if (l.device) l.device->ops->close(l.device);
  wlmi_generator_destroy(l.generator);
  wlmi_measurements_free(records, count);
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
