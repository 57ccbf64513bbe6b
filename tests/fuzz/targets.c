/* The parsers of untrusted text and bytes. An accepted input must give valid data, and writing and reading that again
 * must give the same. */
#include "fuzz/targets.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/memory.h"
#include "core/csr/stats.h"
#include "core/problem/message.h"
#include "core/problem/operator.h"
#include "core/problem/spec_key.h"
#include "core/records/lines.h"
#include "core/synth/input.h"
#include "core/synth/twin.h"
#include "db/interchange.h"
#include "db/kernel_cache.h"
#include "db/measurement_set.h"
#include "generator/generator.h"
#include "select/model.h"
#include "support/asserts.h"
#include "support/db_fixture.h"
#include "support/npz.h"

static int same(const wlmi_text *a, const wlmi_text *b) {
  return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

/* ---- matrices ---- */

static void check_matrix(wlm_status status, wlmi_csr_host *csr) {
  if (status != WLM_OK) return;
  wlm_stats stats;
  FUZZ_CHECK(csr->rowptr[0] == 0 && csr->rowptr[csr->rows] == csr->nnz);
  for (int64_t r = 0; r < csr->rows; r++) {
    FUZZ_CHECK(csr->rowptr[r] <= csr->rowptr[r + 1]);
    for (int64_t p = csr->rowptr[r]; p < csr->rowptr[r + 1]; p++)
      FUZZ_CHECK(csr->colind[p] >= 0 && csr->colind[p] < csr->cols &&
                 (p == csr->rowptr[r] || csr->colind[p - 1] < csr->colind[p]));
  }
  const wlm_status computed =
      wlmi_stats_compute(csr->rowptr, WLM_I64, csr->rows, csr->cols, csr->nnz, csr->colind, WLM_I32, &stats);
  FUZZ_CHECK(computed == WLM_ERR_OUT_OF_MEMORY || (computed == WLM_OK && !wlmi_stats_fault(&stats)));
  wlmi_csr_host_release(csr);
}

static void run_input(const char *path, char *data, size_t size) {
  wlmi_csr_host csr;
  (void)data, (void)size;
  check_matrix(wlmi_input_read(path, &csr), &csr);
}

static int same_matrix(const wlmi_csr_host *a, const wlmi_csr_host *b) {
  return a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && !a->values == !b->values &&
         !memcmp(a->rowptr, b->rowptr, (size_t)(a->rows + 1) * sizeof *a->rowptr) &&
         (!a->nnz || !memcmp(a->colind, b->colind, (size_t)a->nnz * sizeof *a->colind)) &&
         (!a->nnz || !a->values || !memcmp(a->values, b->values, (size_t)a->nnz * sizeof *a->values));
}

/* What is read as Matrix Market under its name is the same matrix under any other. */
static void run_matrix_market(const char *path, char *data, size_t size) {
  wlmi_csr_host csr, again;
  char other[400];
  (void)data, (void)size;
  if (wlmi_input_read(path, &csr) != WLM_OK) return;
  snprintf(other, sizeof other, "%s.txt", path);
  if (access(other, F_OK) && symlink(path, other)) fuzz_fail("a symbolic link");
  FUZZ_CHECK(wlmi_input_read(other, &again) == WLM_OK && same_matrix(&csr, &again));
  wlmi_csr_host_release(&again);
  check_matrix(WLM_OK, &csr);
}

static void run_synthetic(const char *path, char *data, size_t size) {
  wlmi_csr_host csr;
  (void)path, (void)size;
  check_matrix(wlmi_twin_make(data, &csr), &csr);
}

#define BANNER "%%MatrixMarket matrix coordinate "
static const char *const matrix_texts[] = {
    BANNER "real general\n% a comment\n3 4 3\n1 1 -1.5\n3 4 .25e1\n2 2 0\n",
    BANNER "integer symmetric\r\n2 2 2\r\n1 1 7\r\n2 1 -16777217\r\n",
    BANNER "pattern general\n2 3 3\n2 1\n1 3\n2 1\n",
    BANNER "real skew-symmetric\n2 2 1\n2 1 4e-3\n",
    BANNER "pattern symmetric\n30 30 0\n",
    "%%MatrixMarket matrix array complex hermitian\n1 1\n1\n",
    BANNER "unsigned-integer general\n1 2 2\n1 1 18446744073709551615\n1 2 7\n",
    BANNER "real hermitian\n2 2 3\n1 1 1.5D+02\n2 1 -inf\n2 2 NaN\n",
    "\xEF\xBB\xBF\n  % MatrixMarket matrix coordinate real general\r1 1 1\r1 1 1d0\r",
    NULL};

/* Seeds with stored and with compressed blocks, so that mutations reach both the text and the format. */
static void seed_gzip(void) {
  for (int i = 0; matrix_texts[i]; i++) {
    size_t size;
    const char *path = folder_file(&folder, "seed.gz");
    gzFile file = gzopen(path, i % 2 ? "wb9" : "wb0");
    gzputs(file, matrix_texts[i]);
    gzclose(file);
    unsigned char *data = read_whole(path, &size);
    fuzz_seed(data, size);
    free(data);
  }
}

static const char *const edge_lists[] = {"# Nodes: 3 Edges: 2\n0\t1\n2\t0\n",
                                         "source,target,weight\n0,1,0.5\n2,0,-1e3\n",
                                         "\xEF\xBB\xBF\"src\";\"dst\"\r\n0 ; 1\r\n\r\n",
                                         "% sym\n1 2 3\n1 2 4",
                                         "# weight source target\n5 1 2\nnan 3 4\n",
                                         "To Node,w,from\r0,-inf,1\r",
                                         "% ring\n3 3\n2 3\n1 3\n1 2\n",
                                         "4 6 0\n2 3 4\n1 3 4\n1 2 4\n1 2 3\n",
                                         "3 3 1\n1 1 1.5\n",
                                         "%MatrixMarket matrix coordinate real general\n1 1 0\n",
                                         "\xFD"
                                         "7zXZ",
                                         NULL};

/* csr, csc and coo, stored and deflated; the format as bytes and as text. */
static void seed_scipy(void) {
  static const int64_t shape[] = {3, 3}, offsets[] = {0, 1, 1, 3};
  static const int32_t indices[] = {1, 2, 0};
  static const float values[] = {5, -2.5F, 1};
  static const char *const formats[] = {"csr", "csc", "coo"};
  static const char text[12] = "c\0\0\0s\0\0\0r\0\0\0";
  for (int i = 0; i < 7; i++) {
    npz_writer writer;
    size_t size;
    const char *path = folder_file(&folder, "seed.npz");
    npz_begin(&writer, path, i % 2 ? 9 : 0);
    npz_array(&writer, "format.npy", i < 6 ? "|S3" : "<U3", "()", i < 6 ? formats[i / 2] : text, i < 6 ? 3 : 12);
    npz_array(&writer, "shape.npy", "<i8", "(2,)", shape, sizeof shape);
    npz_array(&writer, "data.npy", "<f4", "(3,)", values, sizeof values);
    npz_array(&writer, i / 2 != 2 ? "indices.npy" : "row.npy", "<i4", "(3,)", indices, sizeof indices);
    if (i / 2 != 2) npz_array(&writer, "indptr.npy", "<i8", "(4,)", offsets, sizeof offsets);
    if (i / 2 == 2) npz_array(&writer, "col.npy", "<i4", "(3,)", indices, sizeof indices);
    npz_end(&writer);
    unsigned char *data = read_whole(path, &size);
    fuzz_seed(data, size);
    free(data);
  }
}

static const char *const synthetic[] = {"twin:arxiv,scale=0.001,seed=2,communities=5,local=0.5,numbering=contiguous",
                                        "twin:reddit,scale=0.0001",
                                        "uniform:rows=100,d=5,cols=50,seed=3",
                                        "synth:rows=300,d=2.5,cv=1.5,longest=40,cols=200",
                                        "synth:rows=64,d=4,cv=0,communities=3,local=0.25,numbering=scattered,seed=9",
                                        NULL};

/* ---- JSON lines ---- */

static int write_lines(const wlmi_content *content, wlmi_text *out) {
  *out = (wlmi_text){0};
  return wlmi_lines_write(content, out) == WLM_OK;
}

static void run_json_lines(const char *path, char *data, size_t size) {
  wlmi_content content, again;
  wlmi_text text, text_again;
  (void)path, (void)size;
  if (wlmi_lines_read_string(data, "fuzz", &content) != WLM_OK) return;
  for (int64_t i = 0; i < content.recorded_count; i++) {
    char name[WLMI_STAND_IN_NAME];
    wlmi_stand_in_name(&content.recorded[i].stats, name);
  }
  if (write_lines(&content, &text)) {
    FUZZ_CHECK(wlmi_lines_read_string(text.data, "again", &again) == WLM_OK);
    FUZZ_CHECK(write_lines(&again, &text_again) && same(&text, &text_again));
    wlmi_content_release(&again);
    wlmi_text_release(&text_again);
  }
  wlmi_text_release(&text);
  wlmi_content_release(&content);
}

static char *sample_bucket = "v1 rows=14 mean=6 cv=0";
static const char *const objects[] = {
    "{\"\":\"\",\"\":2,{\"\":\"\",\"\":\"\",\"\":\"\",\"\":6,\"\":\"\"}:false,\"\":\"\",\"\":7}",
    "{\"pin\":[{}],\"n\":1e400,\"n\":-0.0}", NULL};

static void seed_json_lines(void) {
  wlmi_measurement_record records[] = {sample_measurement(0), sample_measurement(5), sample_measurement(6)};
  wlmi_measurement_record *r = &records[0];
  wlmi_pin_record pin = {"cuda/sm_90/NVIDIA H200/132", sample_bucket, r->problem, 32, r->variant};
  wlmi_recorded recorded = {"cuda/sm_90/NVIDIA H200/132", r->stats, r->problem, 64};
  for (int i = 0; i < 5; i++) {
    wlmi_content content = {0};
    wlmi_text text;
    if (i < 3) content.records = &records[i], content.count = 1;
    if (i != 1) content.pins = &pin, content.pin_count = 1;
    if (i != 2) content.recorded = &recorded, content.recorded_count = 1;
    if (write_lines(&content, &text)) fuzz_seed(text.data, text.size);
    wlmi_text_release(&text);
  }
}

/* ---- expressions ---- */

static int print_operator(const wlmi_operator *op, wlmi_text *text) {
  *text = (wlmi_text){0};
  wlmi_operator_print(op, text);
  return !text->failed;
}

static void run_operator(const char *path, char *data, size_t size) {
  wlmi_operator op, again;
  wlmi_text text, text_again, c = {0};
  (void)path, (void)size;
  if (wlmi_operator_parse(data, &op) != WLM_OK) return;
  FUZZ_CHECK(print_operator(&op, &text));
  FUZZ_CHECK(wlmi_operator_parse(text.data, &again) == WLM_OK);
  FUZZ_CHECK(print_operator(&again, &text_again) && same(&text, &text_again));
  for (int i = 0; i < WLMI_PARTS; i++)
    if (wlmi_operator_part(&op, (wlmi_part)i))
      wlmi_expression_print(wlmi_operator_part(&op, (wlmi_part)i), i % 2 ? WLMI_SPELL_FLOAT : WLMI_SPELL_DOUBLE, &c);
  wlmi_text_release(&c);
  wlmi_text_release(&text);
  wlmi_text_release(&text_again);
  wlmi_operator_release(&op);
  wlmi_operator_release(&again);
}

static const char *const operators[] = {"message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce;finish=acc/degree",
                                        "message=a<b&&!(b>=1)||a==b?a:b;init=-inf;reduce=max(acc,x);order=any",
                                        "init=1;reduce=acc*leaky_relu(x,.2f);combine=fma(acc,x,1e-3)-(-acc/2)", NULL};

/* The gradients of a message that can be made can be read, unless they are too long. */
static void check_gradient(const wlmi_message *m, int operand) {
  wlmi_text text = {0};
  int transpose;
  const wlm_sampling sampling = {.sample = operand % 2 ? WLM_SAMPLE_BUCKET : WLM_SAMPLE_NONE, .width = 32};
  const wlm_status status = wlmi_message_gradient(m, m->name[operand], &sampling, &text, &transpose);
  if (status == WLM_OK) {
    wlmi_message gradient;
    FUZZ_CHECK(wlmi_message_parse(text.data, &gradient) == WLM_OK);
    wlmi_message_release(&gradient);
  }
  wlmi_text_release(&text);
}

static void run_message(const char *path, char *data, size_t size) {
  wlmi_message m, again;
  wlmi_text text = {0}, text_again = {0};
  (void)path, (void)size;
  if (wlmi_message_parse(data, &m) != WLM_OK) return;
  wlmi_message_print(&m, &text);
  FUZZ_CHECK(wlmi_message_parse(text.data, &again) == WLM_OK);
  wlmi_message_print(&again, &text_again);
  FUZZ_CHECK(same(&text, &text_again));
  for (int i = 0; i < m.operands; i++) check_gradient(&m, i);
  wlmi_text_release(&text);
  wlmi_text_release(&text_again);
  wlmi_message_release(&m);
  wlmi_message_release(&again);
}

static const char *const messages[] = {"sum=relu(b+e)", "x:row:1;k:column:1;sum=tanh(x+k)*a*b;edge_sum=x*b",
                                       "d0:row;w0:row:wins;s:all:1;max=d0*w0/degree;min=b>0?s:y;edge=k",
                                       "q:edge:heads;mean=q*b;prod=fma(q,b,1)", NULL};

static void run_activation(const char *path, char *data, size_t size) {
  wlmi_expression e, again;
  wlmi_text text = {0}, text_again = {0};
  (void)path, (void)size;
  if (wlmi_activation_parse(data, &e) != WLM_OK) return;
  wlmi_expression_print(&e, WLMI_SPELL_NORMAL, &text);
  FUZZ_CHECK(wlmi_activation_parse(text.data, &again) == WLM_OK);
  wlmi_expression_print(&again, WLMI_SPELL_NORMAL, &text_again);
  FUZZ_CHECK(same(&text, &text_again));
  wlmi_text_release(&text);
  wlmi_text_release(&text_again);
  wlmi_expression_release(&e);
  wlmi_expression_release(&again);
}

static const char *const activations[] = {"relu", "x/(1+exp(-x))", "x>0?x:0.1*expm1(x)", "atan2(x,hypot(x,3e-2))!=0",
                                          NULL};

/* ---- problem keys and names of variants ---- */

static void run_problem_key(const char *path, char *data, size_t size) {
  wlmi_spec spec;
  char key[WLMI_SPEC_KEY], class[WLMI_PROBLEM_CLASS];
  (void)path, (void)size;
  wlmi_problem_class(data, class);
  if (wlmi_spec_from_key(data, 32, &spec) != WLM_OK) return;
  wlmi_spec_key(&spec, key);
  FUZZ_CHECK(!strcmp(key, data));
}

static const char *const problem_keys[] = {
    "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
    "op=copy_b.max,dense=bf16,rowptr=i64,colind=i32,values=none,sample=none,empty=identity,arg=i32",
    "op=custom{message=a*b;init=0;reduce=acc+x;combine=reduce},dense=f64,rowptr=i32,colind=i64,values=f64,sample=none",
    "op=mul.mean,dense=f16,rowptr=i32,colind=i32,values=f16,sample=fastrand:64:kept,transpose=1,heads=4",
    "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none,operation=sddmm",
    "op=custom{x:row:1;w:row:wins;sum=tanh(x)*a*b*w;edge_sum=x*b},dense=f32,rowptr=i32,colind=i32,values=f32,sample="
    "none,"
    "operation=message,wins=i64,transpose=1",
    NULL};

static wlmi_generator *generator;

static void make_generator(void) {
  if (wlmi_generator_create(NULL, &generator) != WLM_OK) fuzz_fail("a generator");
}

static void run_variant(const char *path, char *data, size_t size) {
  const wlmi_families *families = wlmi_generator_families(generator);
  wlmi_variant variant, again;
  char name[WLMI_VARIANT_NAME];
  (void)path, (void)size;
  wlmi_variant_recognise(families, data, &again);
  const wlm_status status = wlmi_variant_parse(families, data, &variant);
  FUZZ_CHECK(!wlmi_variant_compare(&variant, &again) && (status == WLM_OK) == (variant.family != 0));
  if (status != WLM_OK) return;
  FUZZ_CHECK(wlmi_variant_print(families, &variant, name));
  FUZZ_CHECK(wlmi_variant_parse(families, name, &again) == WLM_OK && !wlmi_variant_compare(&variant, &again));
}

static const char *const variants[] = {"row_crc/cf=2,rows=4", "row_naive", "merge_path/items=4,lanes=8",
                                       "row_vec/rows=4,lanes=8", NULL};

/* ---- models: the checksum is corrected, so that mutations reach what comes after it ---- */

enum { MODEL_SEAL = 16 };

static void run_model(const char *path, char *data, size_t size) {
  wlmi_model model;
  void *blob;
  size_t blob_size;
  (void)path;
  if (size > MODEL_SEAL) {
    const wlmi_hash hash = wlmi_hash_bytes(data, size - MODEL_SEAL);
    for (int i = 0; i < MODEL_SEAL; i++)
      data[size - MODEL_SEAL + (size_t)i] = (char)((i < 8 ? hash.high : hash.low) >> 8 * (i % 8));
  }
  if (wlmi_model_read(data, size, &model) != WLM_OK) return;
  wlm_stats stats = sample_measurement(0).stats;
  wlmi_candidate candidate = {.pass = {.units_per_block = 4, .threads = 128}, .lanes = 4, .launches = 1};
  wlmi_model_case c;
  wlmi_model_set_families(&model, wlmi_generator_families(generator));
  wlmi_model_case_make(&model, &model.limits, &stats, problem_keys[0], 32, &c);
  for (int i = 0; i < model.family_count; i++) {
    candidate.value.family = model.family_ids[i];
    wlmi_model_seconds(&c, &candidate);
  }
  wlmi_model_spread(&c);
  if (wlmi_model_write(&model, &blob, &blob_size) == WLM_OK) {
    FUZZ_CHECK(blob_size == size && !memcmp(blob, data, size));
    wlmi_free(blob);
  }
  wlmi_model_release(&model);
}

static void seed_model(void) {
  wlmi_tree trees[2] = {0};
  wlmi_point points[2] = {0};
  wlmi_model model = {.problems = "dense=f32,rowptr=i32,colind=i32,sample=none",
                      .limits = {.processors = 132, .l2_bytes = 50 << 20},
                      .made_at = 1,
                      .measurements = 100,
                      .spread = 0.1,
                      .family_count = 2,
                      .families = {"row_vec", "merge_path"},
                      .prepare = {0, 2},
                      .trees = trees,
                      .points = points};
  make_generator();
  for (int i = 0; i < 3; i++) {
    void *blob;
    size_t size;
    model.tree_count = model.point_count = i;
    if (wlmi_model_write(&model, &blob, &size) == WLM_OK) fuzz_seed(blob, size);
    wlmi_free(blob);
  }
}

/* ---- databases ---- */

static void run_tuned_db(const char *path, char *data, size_t size) {
  static const char class[] = "cuda/sm_90/NVIDIA H200/132";
  wlm_store *store;
  wlmi_text report = {0};
  (void)data, (void)size;
  if (wlmi_store_open(path, WLMI_STORE_READ, &store) != WLM_OK) return;
  const wlm_status checked = wlmi_store_check(store, &report);
  wlmi_content content = {0};
  const wlm_status loaded = wlmi_content_load(store, &content);
  FUZZ_CHECK(checked != WLM_OK || loaded == WLM_OK || loaded == WLM_ERR_OUT_OF_MEMORY);
  if (loaded == WLM_OK) wlmi_content_release(&content);
  wlmi_measurement_set set = {0};
  wlmi_measurement_set_add(&set, store, class);
  wlmi_measurement_set_release(&set);
  wlmi_model_record *models;
  int64_t count;
  if (wlmi_store_load_models(store, class, &models, &count) == WLM_OK) wlmi_model_records_free(models, count);
  wlmi_text_release(&report);
  wlmi_store_close(store);
}

static void seed_tuned_db(void) {
  const char *path = folder_file(&folder, "tuned.db");
  size_t size;
  for (int count = 0; count < 20; count += 9) {
    unlink(path);
    wlm_store *store;
    if (wlmi_store_open(path, WLMI_STORE_WRITE, &store) != WLM_OK) fuzz_fail("a store");
    wlmi_model_record model = {"model", 1, "bytes", 5};
    wlmi_store_put_model(store, "cuda/sm_90/NVIDIA H200/132", &model);
    wlmi_store_close(store);
    put_samples(path, count);
    unsigned char *data = read_whole(path, &size);
    fuzz_seed(data, size);
    free(data);
  }
}

static void run_kernels_db(const char *path, char *data, size_t size) {
  wlmi_kernel_cache *cache;
  void *blob;
  size_t blob_size;
  (void)data, (void)size;
  if (wlmi_kernel_cache_open(path, 1 << 20, &cache) != WLM_OK) return;
  if (wlmi_kernel_cache_get(cache, "00", &blob, &blob_size) == WLM_OK) {
    FUZZ_CHECK(blob_size == 64 && !memcmp(blob, problem_keys[0], blob_size));
    wlmi_free(blob);
  }
  wlmi_kernel_cache_close(cache);
}

static void seed_kernels_db(void) {
  const char *path = folder_file(&folder, "kernels.db");
  wlmi_kernel_cache *cache;
  size_t size;
  if (wlmi_kernel_cache_open(path, 1 << 20, &cache) != WLM_OK) fuzz_fail("a kernel cache");
  wlmi_kernel_cache_put(cache, "00", problem_keys[0], 64);
  wlmi_kernel_cache_close(cache);
  unsigned char *data = read_whole(path, &size);
  fuzz_seed(data, size);
  free(data);
}

const fuzz_target fuzz_targets[] = {
    {"matrix_market", "a.mtx", matrix_texts, NULL, run_matrix_market, 0},
    {"matrix_market_gz", "a.mtx.gz", NULL, seed_gzip, run_matrix_market, 0},
    {"edge_list", "a.txt", edge_lists, NULL, run_input, 0},
    {"scipy", "a.npz", NULL, seed_scipy, run_input, 0},
    {"synthetic", NULL, synthetic, NULL, run_synthetic, 128 << 10}, /* larger matrices take longer and test no more */
    {"json_lines", NULL, objects, seed_json_lines, run_json_lines, 0},
    {"operator", NULL, operators, NULL, run_operator, 0},
    {"message", NULL, messages, NULL, run_message, 0},
    {"activation", NULL, activations, NULL, run_activation, 0},
    {"problem_key", NULL, problem_keys, NULL, run_problem_key, 0},
    {"variant", NULL, variants, make_generator, run_variant, 0},
    {"model", NULL, NULL, seed_model, run_model, 0},
    {"tuned_db", "tuned.db", NULL, seed_tuned_db, run_tuned_db, 0},
    {"kernels_db", "kernels.db", NULL, seed_kernels_db, run_kernels_db, 0},
};
const size_t fuzz_target_count = sizeof fuzz_targets / sizeof *fuzz_targets;
