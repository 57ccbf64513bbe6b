/* Trains cost models on measurements. */
#pragma once

#include "core/records/record.h"
#include "generator/generator.h"
#include "runtime/context.h"
#include "select/model.h"

/* The least number of different matrices: with fewer a model is worse than the rules. */
enum { WLMI_TRAIN_MATRICES = 8 };

/* A class of products (wlmi_model_class) with measurements. */
typedef struct wlmi_taught {
  char problems[WLMI_PROBLEM_CLASS];
  int64_t matrices, cases; /* distinct matrices, and cases (matrix, operator and N) */
  int64_t model;           /* index; -1 = too few matrices */
} wlmi_taught;

typedef struct wlmi_models {
  wlmi_model *models; /* one for each class with enough matrices */
  int64_t count;
  wlmi_taught *classes; /* all problem classes with measurements */
  int64_t class_count;
} wlmi_models;

/* `records` are of one device class, which `limits` describe. Measurements of variants that the templates no longer
 * have are ignored. The same records give the same models, except for made_at. */
wlm_status wlmi_models_train(wlmi_generator *generator, const wlmi_limits *limits,
                             const wlmi_measurement_record *records, int64_t count, wlmi_models *models);
void wlmi_models_release(wlmi_models *models);

/* As wlm_train, and returns the models; release them with wlmi_models_release. Creates no database. */
wlm_status wlmi_learn(wlm_context *context, wlmi_models *models);
