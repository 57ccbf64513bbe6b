/* From measurements to models. */
#ifndef WLM_TUNER_TRAIN_H
#define WLM_TUNER_TRAIN_H

#include "generator/generator.h"
#include "records/record.h"
#include "select/model.h"

/* Fewer different matrices than this teach nothing that a rule would not know better. */
enum { WLM_TRAIN_MATRICES = 8 };

/* A class of problems of which something was measured. */
typedef struct wlmi_taught {
  char problems[WLM_PROBLEM_CLASS];
  int64_t matrices, cases; /* matrices, and those with their operators and widths */
  int64_t model;           /* index; -1 = too few matrices */
} wlmi_taught;

typedef struct wlmi_models {
  wlmi_model *models; /* one for each class of problems that has enough matrices */
  int64_t count;
  wlmi_taught *classes; /* all of them */
  int64_t class_count;
} wlmi_models;

/* `records` are of one device class, which `limits` describe. What was measured of variants that the
 * templates do not make any more teaches nothing. The same records give the same models, made_at excepted. */
wlm_status wlmi_models_train(wlmi_generator *generator, const wlmi_limits *limits,
                             const wlmi_measurement_record *records, int64_t count, wlmi_models *models);
void wlmi_models_release(wlmi_models *models);

#endif
