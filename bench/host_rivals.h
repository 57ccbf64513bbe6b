/* What the host device is measured against. The rivals are a table; whoever holds entrants asks for all of them at
 * once. */
#ifndef WLM_BENCH_HOST_RIVALS_H
#define WLM_BENCH_HOST_RIVALS_H

#include "bench/entrant.h"
#include "common/text.h"

/* C = A * B in f32, with 32-bit columns and values, B and C row-major without gaps; all in the host device's memory. */
typedef struct wlmi_host_product {
  const wlm_csr *csr;
  int64_t n;
  const float *b;
  float *c;
} wlmi_host_product;

typedef struct wlmi_host_rival {
  const char *name;
  /* Everything that is not the product itself happens here. The product's C may be written. */
  wlm_status (*create)(const wlmi_host_product *product, void **rival);
  wlm_status (*enqueue)(void *rival, void *stream); /* has finished when it returns */
  void (*destroy)(void *rival);
} wlmi_host_rival;

enum { WLM_HOST_RIVALS = 2 };
extern const wlmi_host_rival wlmi_rival_openmp, wlmi_rival_graphblas;

/* Each rival as an entrant over the operands' memory; one that cannot be set up has a failure. */
void wlmi_host_rivals_enter(const wlmi_operands *operands, wlmi_entrant entrants[WLM_HOST_RIVALS]);
/* "host_rivals":{name:us or null},"host_rival_errors":{name:reason} */
void wlmi_host_rivals_write(const wlmi_entrant entrants[WLM_HOST_RIVALS], wlmi_text *line);

#endif
