/* Kernels that are linked in, and what chooses among them: the tables of an exported library (docs/exporting.md), and
 * in the full library its built-in kernels. exported/write.h writes them as C text. All of it is constant.
 *
 * Passes and images are written once and named by their index. */
#pragma once

#include "core/base/hash.h"
#include "core/problem/program.h"
#include "core/problem/spec.h"
#include "core/records/content.h"
#include "select/case.h"

/* A family, with parameter = NULL, or one value of a parameter of the last family; in the order of the families. */
typedef struct wlmi_exported_family {
  const char *name, *parameter, *value;
} wlmi_exported_family;

/* ---- choices ---- */

/* What was learned on one device class. */
typedef struct wlmi_exported_class {
  const char *name; /* wlmi_device_class */
  wlmi_device_record device;
  const wlmi_case *cases; /* without `point` and `borrowed`, which follow */
  int64_t case_count;
  const wlmi_pin_record *pins;
  int64_t pin_count;
  const wlmi_model_record *models;
  int64_t model_count;
} wlmi_exported_class;

/* ---- kernels ---- */

/* A candidate of a problem, contained or not. */
typedef struct wlmi_exported_candidate {
  wlmi_variant value;
  uint8_t launches, prepares, whole_rows, walks_a;
  uint16_t pass; /* as in wlmi_candidate */
} wlmi_exported_candidate;

/* A host kernel that is linked in. */
typedef struct wlmi_exported_function {
  const char *name;
  void (*function)(void); /* of the type that runtime/host/device.c calls */
} wlmi_exported_function;

/* A cubin, PTX ended by NUL, or with size 0 the functions of a host kernel, ended by one without a name. */
typedef struct wlmi_exported_image {
  const void *data;
  size_t size;
} wlmi_exported_image;

typedef struct wlmi_exported_kernel {
  wlmi_hash spec; /* wlmi_spec_id; of a built-in kernel wlmi_exported_builtin_id */
  wlmi_variant variant;
  uint8_t helper; /* a wlmi_helper */
  uint8_t pass_count, deterministic, uses_b, walks_a;
  uint16_t passes[WLMI_MAX_PASSES];
  wlmi_bytes workspace, prepared;
  const char *name, *split;
  int64_t image;
} wlmi_exported_kernel;

/* A problem at one width. */
typedef struct wlmi_exported_problem {
  wlmi_hash spec;
  const wlmi_exported_candidate *candidates; /* all of them, in the order of the generator */
  int64_t candidate_count;
  int64_t general; /* the kernel that runs where none of a decision's is contained */
} wlmi_exported_problem;

/* What runs on the host, or on GPUs of one architecture. */
typedef struct wlmi_exported_target {
  wlmi_target target;
  int arch;   /* 90 for sm_90; 0 for the host */
  int is_ptx; /* the images are PTX, which every newer GPU runs, too */
  const wlmi_exported_problem *problems;
  int64_t problem_count;
  const wlmi_exported_kernel *kernels;
  int64_t kernel_count;
} wlmi_exported_target;

typedef struct wlmi_exported {
  int version; /* of the library that wrote it: WLM_VERSION_... as wlm_version() gives it */
  const wlmi_exported_family *families;
  int64_t family_count;
  /* A pass that balances its blocks has processors = 1 and in `wave` the blocks that a multiprocessor holds. */
  const wlmi_pass *passes;
  int64_t pass_count;
  const wlmi_exported_image *images;
  const wlmi_exported_class *classes;
  int64_t class_count;
  const wlmi_exported_target *targets;
  int64_t target_count;
} wlmi_exported;

/* The tables that are linked in; written by export, or for the full library by tools/embed_builtin.c. */
extern const wlmi_exported wlmi_exported_tables;

/* NULL where nothing is contained for these limits, this problem, or this kernel (`variant` is zeroed for a helper);
 * a target of NULL contains nothing. */
const wlmi_exported_target *wlmi_exported_target_of(const wlmi_exported *tables, const wlmi_limits *limits);
const wlmi_exported_problem *wlmi_exported_problem_of(const wlmi_exported_target *target, const wlmi_hash *spec);
const wlmi_exported_kernel *wlmi_exported_kernel_of(const wlmi_exported_target *target, const wlmi_hash *spec,
                                                    const wlmi_variant *variant, wlmi_helper helper);
/* The newest contained architecture that a GPU of `arch` runs; `arch` itself if there is none. */
int wlmi_exported_arch(const wlmi_exported *tables, int arch);
/* WLM_ERR_UNSUPPORTED, naming the problem, its width and the device. */
wlm_status wlmi_exported_lacks(const wlmi_spec *spec, const wlmi_limits *limits);
/* The pass with the blocks and multiprocessors of the device; and a program with such passes and without a source. */
wlmi_pass wlmi_exported_pass(const wlmi_exported *tables, int index, const wlmi_limits *limits);
wlmi_program wlmi_exported_program(const wlmi_exported *tables, const wlmi_exported_kernel *kernel,
                                   const wlmi_limits *limits);

/* Identifies a problem of any number of columns, of A or of A^T; and its built-in kernel, NULL if there is none. */
wlmi_hash wlmi_exported_builtin_id(const wlmi_spec *spec);
const wlmi_exported_kernel *wlmi_exported_builtin(const wlmi_exported *tables, const wlmi_limits *limits,
                                                  const wlmi_spec *spec);
