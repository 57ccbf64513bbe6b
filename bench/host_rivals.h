/* What the host device is measured against. The rivals are a table; whoever holds entrants asks for all of them at
 * once. */
#ifndef WLM_BENCH_HOST_RIVALS_H
#define WLM_BENCH_HOST_RIVALS_H

#include "bench/entrant.h"
#include "common/text.h"

/* C = A * B in f32, with 32-bit columns and values, B and C row-major without gaps; all in the host device's memory. */
typedef struct wlm_host_product {
  const wlm_csr *csr;
  int64_t n;
  const float *b;
  float *c;
} wlm_host_product;

typedef struct wlm_host_rival {
  const char *name;
  /* Everything that is not the product itself happens here. The product's C may be written. */
  wlm_status (*create)(const wlm_host_product *product, void **rival);
  wlm_status (*enqueue)(void *rival, void *stream); /* has finished when it returns */
  void (*destroy)(void *rival);
} wlm_host_rival;

enum { WLM_HOST_RIVALS = 2 };
extern const wlm_host_rival wlm_rival_openmp, wlm_rival_graphblas;

/* Each rival as an entrant over the operands' memory; one that cannot be set up has a failure. */
void wlm_host_rivals_enter(const wlm_operands *operands, wlm_entrant entrants[WLM_HOST_RIVALS]);
/* "host_rivals":{name:us or null},"host_rival_errors":{name:reason} */
void wlm_host_rivals_write(const wlm_entrant entrants[WLM_HOST_RIVALS], wlm_text *line);

#endif
