/* One candidate timed on one matrix and one device: the record that tuner, store, selection, explain and bench share.
 * Every text may be NULL, which means "". */
#pragma once

#include "core/base/text.h"

typedef struct wlmi_device_record {
  char *name; /* "NVIDIA H200", or the CPU's model */
  char *kind; /* "cuda" or "host" */
  char *arch; /* "sm_90", or the CPU flag that the host compiler gets */
  int processors;
  int64_t memory_bytes;
} wlmi_device_record;
/* How unlike another device is; 0 = it is the same, or too unlike: of another kind, and processors of a host of another
 * architecture, or with more than twice or less than half of them. Another name counts more than twice the processors,
 * and another architecture more than another name. */
double wlmi_device_unlikeness(const wlmi_device_record *device, const wlmi_device_record *other);

/* The device class, "cuda/sm_90/NVIDIA H200/132": devices of one class share measurements. */
void wlmi_device_class(const wlmi_device_record *device, wlmi_text *out);

typedef struct wlmi_measurement_record {
  wlmi_device_record device;
  char *matrix_name;
  wlm_stats stats; /* mean is not stored: it is nnz / rows */
  char *variant;
  char *version; /* of the family's kernels, 32 hexadecimal digits: the number in family.lua, or a hash of the files of
                  * a family that is not the library's own (generator/files.h). Older versions of the library wrote a
                  * hash of the emitted text, or "" where there was none */
  char *problem; /* wlmi_spec_key */
  int64_t n;
  char *compiler; /* "nvrtc 13.0", "cc 12.2.0" */
  char *driver;
  char *clock;                /* WLM_CLOCK_...; "" is hot */
  int64_t time_ps, spread_ps; /* median and interquartile range of one call; both 0 where it failed */
  int64_t prepare_ps;         /* preparing the plan, once; 0 = it needs none, or failed */
  int samples;
  int64_t calls_per_sample;
  double max_rel_err; /* not a number where unknown, allowed only where it failed */
  int failed;
  char *reason;    /* why it failed */
  int64_t made_at; /* seconds since 1970, up to the year 9999 */
} wlmi_measurement_record;

/* Why no matrix can have these stats, as a message; NULL = a matrix can. */
const char *wlmi_stats_fault(const wlm_stats *stats);

/* Whether a failure with this status would happen again: a wrong result, a source that does not compile, a kernel that
 * does not fit. Other failures may be temporary (no descriptors left, a full disk, a killed compiler) and are never
 * stored. */
int wlmi_failure_is_lasting(wlm_status status);
/* Whether this is a temporary failure, which only older versions stored. It is ignored. */
int wlmi_measurement_is_passing(const wlmi_measurement_record *record);

/* Whether times are too noisy: the quartiles of precise samples differ by more than a quarter of the median, or
 * screening runs by more than the least of them. The next tuning measures such a kernel again. */
int wlmi_spread_is_noisy(double spread, int samples);
int wlmi_measurement_is_noisy(const wlmi_measurement_record *record);

/* What `clock` says of how a time was taken. Hot, as for most: one call after the other. */
#define WLMI_CLOCK_HOT "hot"
/* Cold: a call that found none of its operands in cache. Such a record accompanies a hot one and never decides a
 * choice. */
#define WLMI_CLOCK_COLD "cold"
/* A measurement with fewer samples is a screening run. It ranks a kernel, but cannot win against kernels with precise
 * times. */
#define WLMI_PRECISE_SAMPLES 3
int wlmi_measurement_is_cold(const wlmi_measurement_record *record);
/* Online: online tuning timed a program's own calls. Counts as a screening run, however many samples it has. */
#define WLMI_CLOCK_ONLINE "online"
int wlmi_measurement_is_online(const wlmi_measurement_record *record);
