#include "cli/sampling_file.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/problem/spec.h"

static const char format[] = "warploom sampling 1", any_format[] = "warploom sampling ";

int wlmi_sampling_file_is(const char *path) {
  struct stat info;
  FILE *file = !stat(path, &info) && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
  char first = 0;
  if (!file) return 0;
  if (fscanf(file, " %c", &first) != 1) first = 0;
  fclose(file);
  return first == '{' || first == '[';
}

/* ---- fields ---- */

typedef enum field_type { TEXT, REAL, REAL_OR_NULL } field_type;

typedef struct field {
  const char *key;
  field_type type;
  size_t offset; /* of a const char * or a double */
  double least, most;
  const char *must_be;
} field;

#define NUMBER           -DBL_MAX, DBL_MAX, "a number"
#define POSITIVE         DBL_MIN, DBL_MAX, "a number above 0"
#define AT(type, member) offsetof(wlmi_sampling_##type, member)

static const field of_file[] = {
    {"metric", TEXT, AT(file, metric), 0, 0, "a text"},
    {"device", TEXT, AT(file, device), 0, 0, "a text"},
    {"model", TEXT, AT(file, model), 0, 0, "a text"},
    {"budget", REAL, AT(file, budget), DBL_MIN, 1, "above 0 and at most 1"},
    {"confidence", REAL, AT(file, confidence), 0.5, 1, "from 0.5 to 1"},
    {"loss", REAL, AT(file, loss), NUMBER},
    {"bound", REAL, AT(file, bound), NUMBER},
    {"us", REAL, AT(file, us), POSITIVE},
    {"exact_us", REAL, AT(file, exact_us), POSITIVE},
    {0},
};
static const field of_layer[] = {
    {"expected", REAL_OR_NULL, AT(layer, expected), NUMBER},
    {"measured", REAL_OR_NULL, AT(layer, measured), NUMBER},
    {0},
};
static const field of_tried[] = {
    {"us", REAL, AT(tried, us), POSITIVE},
    {"loss", REAL, AT(tried, loss), NUMBER},
    {"bound", REAL_OR_NULL, AT(tried, bound), NUMBER},
    {0},
};

/* Where in the file a value is: "tried[3].". */
typedef char place[96];

static wlm_status read_fields(const json_t *object, const char *where, const field *fields, void *out) {
  if (!json_is_object(object)) return wlmi_fail(WLM_ERR_PARSE, "%.*s must be an object", (int)strlen(where) - 1, where);
  for (const field *f = fields; f->key; f++) {
    const json_t *value = json_object_get(object, f->key);
    void *at = (char *)out + f->offset;
    const int is_null = f->type == REAL_OR_NULL && json_is_null(value);
    const double number = is_null ? (double)NAN : json_number_value(value);
    const int fits = f->type == TEXT ? json_is_string(value)
                                     : is_null || (json_is_number(value) && number >= f->least && number <= f->most);
    if (!value) return wlmi_fail(WLM_ERR_PARSE, "%s%s is missing", where, f->key);
    if (!fits) return wlmi_fail(WLM_ERR_PARSE, "%s%s must be %s", where, f->key, f->must_be);
    if (f->type == TEXT)
      *(const char **)at = json_string_value(value);
    else
      *(double *)at = number;
  }
  return WLM_OK;
}

static wlm_status read_sample(const json_t *sample, const char *where, const char *key) {
  enum { WIDEST = 1 << 20 };
  const char *strategy = json_string_value(json_object_get(sample, "strategy"));
  const json_t *width = json_object_get(sample, "width");
  if (json_is_null(sample)) return WLM_OK;
  if (!sample) return wlmi_fail(WLM_ERR_PARSE, "%s%s is missing", where, key);
  if (!strategy || wlmi_sample_from_name(strategy) <= WLM_SAMPLE_NONE)
    return wlmi_fail(WLM_ERR_PARSE, "%s%s.strategy must be bucket, fastrand or fastrand_coprime", where, key);
  if (!json_is_integer(width) || json_integer_value(width) < 1 || json_integer_value(width) > WIDEST)
    return wlmi_fail(WLM_ERR_PARSE, "%s%s.width must be an integer from 1 to %d", where, key, WIDEST);
  return WLM_OK;
}

static wlm_status read_worst(const json_t *worst, const char *where) {
  int fits = json_is_array(worst);
  for (size_t i = 0; i < json_array_size(worst); i++)
    fits &= json_is_integer(json_array_get(json_array_get(worst, i), 0));
  return fits ? WLM_OK : wlmi_fail(WLM_ERR_PARSE, "%sworst must be an array of [row, edges, variance]", where);
}

static wlm_status read_layers(wlmi_sampling_file *file) {
  json_t *layers = json_object_get(file->root, "layers"), *layer;
  const char *name;
  place where;
  if (!json_is_object(layers) || !json_object_size(layers))
    return wlmi_fail(WLM_ERR_PARSE, "layers must be an object that is not empty");
  WLM_CHECK(
      wlmi_alloc_array((int64_t)json_object_size(layers), sizeof *file->layers, "layers", (void **)&file->layers));
  json_object_foreach(layers, name, layer) {
    wlmi_sampling_layer *out = &file->layers[file->layer_count];
    *out = (wlmi_sampling_layer){
        .name = name, .sample = json_object_get(layer, "sample"), .worst = json_object_get(layer, "worst")};
    snprintf(where, sizeof where, "layers['%.64s'].", name);
    WLM_CHECK(read_fields(layer, where, of_layer, out));
    WLM_CHECK(read_sample(out->sample, where, "sample"));
    WLM_CHECK(read_worst(out->worst, where));
    file->layer_count++;
  }
  return WLM_OK;
}

static const json_t *sample_of(const wlmi_sampling_tried *tried, const wlmi_sampling_layer *layer) {
  return json_object_get(tried->samples, layer->name);
}

static wlm_status read_tried(wlmi_sampling_file *file) {
  const json_t *all = json_object_get(file->root, "tried");
  place where;
  if (!json_is_array(all)) return wlmi_fail(WLM_ERR_PARSE, "tried must be an array");
  WLM_CHECK(wlmi_alloc_array((int64_t)json_array_size(all), sizeof *file->tried, "settings", (void **)&file->tried));
  for (size_t i = 0; i < json_array_size(all); i++) {
    const json_t *one = json_array_get(all, i);
    wlmi_sampling_tried *out = &file->tried[i];
    *out = (wlmi_sampling_tried){.is_chosen = 1, .samples = json_object_get(one, "samples")};
    snprintf(where, sizeof where, "tried[%zu].", i);
    WLM_CHECK(read_fields(one, where, of_tried, out));
    snprintf(where, sizeof where, "tried[%zu].samples.", i);
    for (int64_t k = 0; k < file->layer_count; k++) {
      const json_t *sample = sample_of(out, &file->layers[k]);
      WLM_CHECK(read_sample(sample, where, file->layers[k].name));
      out->is_chosen &= json_equal(sample, file->layers[k].sample);
    }
    file->tried_count++;
  }
  return WLM_OK;
}

/* ---- the file ---- */

static wlm_status read_root(const char *data, size_t size, wlmi_sampling_file *file) {
  json_error_t error;
  file->root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
  if (!file->root && json_error_code(&error) == json_error_out_of_memory)
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%zu bytes", size);
  if (!file->root) return wlmi_fail(WLM_ERR_PARSE, "line %d: %s", error.line, error.text);
  const char *found = json_string_value(json_object_get(file->root, "format"));
  if (!found || strncmp(found, any_format, strlen(any_format)))
    return wlmi_fail(WLM_ERR_PARSE, "format must be '%s'", format);
  if (strcmp(found, format)) return wlmi_fail(WLM_ERR_PARSE, "it is '%s', and this version reads '%s'", found, format);
  WLM_CHECK(read_fields(file->root, "", of_file, file));
  WLM_CHECK(read_layers(file));
  return read_tried(file);
}

wlm_status wlmi_sampling_file_read(const char *path, wlmi_sampling_file *file) {
  char *data = NULL;
  size_t size = 0;
  *file = (wlmi_sampling_file){0};
  WLM_CHECK(wlmi_file_read(path, &data, &size));
  const wlm_status status = read_root(data, size, file);
  wlmi_free(data);
  if (status != WLM_ERR_PARSE) return status;
  return wlmi_fail(status,
                   "%s: is no sampling that warploom.torch.calibrate saved (%s); run it again, or name a matrix", path,
                   wlm_error_detail());
}

void wlmi_sampling_file_release(wlmi_sampling_file *file) {
  json_decref(file->root);
  wlmi_free(file->layers);
  wlmi_free(file->tried);
  *file = (wlmi_sampling_file){0};
}

/* ---- samples as texts ---- */

static void put_sample(const json_t *sample, int with_strategy, wlmi_text *out) {
  if (json_is_null(sample)) {
    wlmi_text_puts(out, with_strategy ? "all edges" : "all");
    return;
  }
  if (with_strategy) wlmi_text_printf(out, "%s ", json_string_value(json_object_get(sample, "strategy")));
  wlmi_text_integer(out, json_integer_value(json_object_get(sample, "width")));
}

static void put_samples(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, int with_strategy,
                        const char *between, wlmi_text *out) {
  const json_t *first = sample_of(tried, &file->layers[0]);
  int are_same = 1;
  for (int64_t i = 1; i < file->layer_count; i++) are_same &= json_equal(first, sample_of(tried, &file->layers[i]));
  for (int64_t i = 0; i < (are_same ? 1 : file->layer_count); i++) {
    if (i) wlmi_text_puts(out, between);
    put_sample(sample_of(tried, &file->layers[i]), with_strategy, out);
  }
}

void wlmi_sampling_text(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, wlmi_text *out) {
  put_samples(file, tried, 1, "; ", out);
}

void wlmi_sampling_layer_text(const wlmi_sampling_layer *layer, wlmi_text *out) { put_sample(layer->sample, 1, out); }

void wlmi_sampling_worst_rows(const wlmi_sampling_layer *layer, wlmi_text *out) {
  for (size_t i = 0; i < json_array_size(layer->worst); i++) {
    if (i) wlmi_text_puts(out, ", ");
    wlmi_text_integer(out, json_integer_value(json_array_get(json_array_get(layer->worst, i), 0)));
  }
}

void wlmi_sampling_widths(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, wlmi_text *out) {
  put_samples(file, tried, 0, "/", out);
}
