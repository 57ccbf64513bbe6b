/* The file of warploom.torch.calibrate: how the layers of a model sample edges, and the settings that it measured. */
#pragma once

#include "core/base/json_value.h"

/* Unknown numbers are NaN. */
typedef struct wlmi_sampling_layer {
  const char *name;
  const json_t *sample;      /* null = all edges */
  double expected, measured; /* the variance */
  const json_t *worst;       /* [row, edges, variance] of the rows with the largest variance */
} wlmi_sampling_layer;

typedef struct wlmi_sampling_tried {
  double us, loss, bound;
  int is_chosen;
  const json_t *samples; /* of the layers, by name */
} wlmi_sampling_tried;

typedef struct wlmi_sampling_file {
  json_t *root; /* texts and samples live as long */
  const char *metric, *device, *model;
  double budget, confidence, loss, bound; /* shares: 0.01 is one point */
  double us, exact_us;
  wlmi_sampling_layer *layers;
  wlmi_sampling_tried *tried;
  int64_t layer_count, tried_count;
} wlmi_sampling_file;

/* Whether this is a regular file that begins as JSON does, which no matrix does. */
int wlmi_sampling_file_is(const char *path);
/* WLM_ERR_PARSE names the path and the field that is wrong, or the version. Release it also then. */
wlm_status wlmi_sampling_file_read(const char *path, wlmi_sampling_file *file);
void wlmi_sampling_file_release(wlmi_sampling_file *file);

/* "all edges; bucket 32": what the layers of a setting do; once, where all do the same. */
void wlmi_sampling_text(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, wlmi_text *out);
void wlmi_sampling_layer_text(const wlmi_sampling_layer *layer, wlmi_text *out);
/* "964, 1444": the rows with the largest variance. */
void wlmi_sampling_worst_rows(const wlmi_sampling_layer *layer, wlmi_text *out);
/* "all/32": the same by S alone. */
void wlmi_sampling_widths(const wlmi_sampling_file *file, const wlmi_sampling_tried *tried, wlmi_text *out);
