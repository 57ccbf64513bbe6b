#include "runtime/background.h"

#include "core/base/memory.h"
#include "runtime/load.h"

/* A decision whose kernels are to be compiled; without an upgrade the job is those of a helper. */
struct wlmi_background_job {
  wlm_context *context;
  wlmi_spec spec;
  char *activation; /* the spec's, copied */
  wlmi_decision decision;
  wlmi_hash key;
  uint64_t generation;
  wlmi_upgrade *upgrade;
  wlmi_helper helper;
  wlm_csr types; /* of a helper */
  wlmi_background_job *next;
};

static void free_job(wlmi_background_job *job) {
  if (!job) return;
  wlmi_free(job->activation);
  wlmi_upgrade_drop(job->upgrade);
  wlmi_free(job);
}

static void compile_helper(const wlmi_background_job *job) {
  void *kernels[WLMI_MAX_PASSES];
  if (wlmi_load_helper(job->context, job->helper, &job->types, kernels) != WLM_OK)
    wlmi_log(WLM_LOG_WARNING, "compiling in the background: %s", wlm_error_detail());
}

static void compile(wlmi_background_job *job) {
  wlmi_decided *decided = wlmi_decided_new(&job->key);
  wlm_status status = decided ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "decision");
  if (status == WLM_OK) {
    decided->plan.reason.decision = job->decision;
    wlmi_spec_key(&job->spec, decided->plan.reason.problem_key);
    status = wlmi_load_plan(job->context, &job->spec, WLM_OK, 0, &decided->plan);
  }
  if (status == WLM_OK && !decided->plan.no_rebind) {
    wlmi_decisions_replace(&job->context->decisions, decided, job->generation);
    atomic_store(&job->upgrade->result, decided);
    return;
  }
  if (status == WLM_OK) /* the entry that loaded must be prepared, which only the caller can do */
    wlmi_log(WLM_LOG_WARNING, "compiling in the background: %s did not compile, and %s must be prepared",
             job->decision.variant, decided->plan.reason.decision.variant);
  else
    wlmi_log(WLM_LOG_WARNING, "compiling in the background: %s", wlm_error_detail());
  wlmi_decided_drop(decided);
}

static void *work(void *user) {
  wlmi_background *b = user;
  pthread_mutex_lock(&b->lock);
  while (!b->stopping) {
    wlmi_background_job *job = b->first;
    if (!job) {
      pthread_cond_wait(&b->changed, &b->lock);
      continue;
    }
    b->first = job->next;
    if (!b->first) b->last = NULL;
    pthread_mutex_unlock(&b->lock);
    if (job->upgrade)
      compile(job);
    else
      compile_helper(job);
    free_job(job);
    pthread_mutex_lock(&b->lock);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

void wlmi_background_open(wlmi_background *b, int wanted) {
  *b = (wlmi_background){.wanted = wanted};
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->changed, NULL);
}

void wlmi_background_close(wlmi_background *b) {
  pthread_mutex_lock(&b->lock);
  b->stopping = 1;
  pthread_cond_signal(&b->changed);
  pthread_mutex_unlock(&b->lock);
  if (b->running) pthread_join(b->thread, NULL);
  while (b->first) {
    wlmi_background_job *job = b->first;
    b->first = job->next;
    free_job(job);
  }
  pthread_cond_destroy(&b->changed);
  pthread_mutex_destroy(&b->lock);
}

/* Starts the thread with the first job. The caller holds the lock. */
static wlm_status append(wlmi_background *b, wlmi_background_job *job) {
  wlm_status status = WLM_OK;
  if (!b->running && pthread_create(&b->thread, NULL, work, b))
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a thread that compiles");
  else
    b->running = 1;
  if (status == WLM_OK) {
    if (b->last)
      b->last->next = job;
    else
      b->first = job;
    b->last = job;
    pthread_cond_signal(&b->changed);
  }
  return status;
}

wlm_status wlmi_background_helps(wlm_context *context, wlmi_helper helper, const wlm_csr *csr, int *on_host) {
  wlmi_background *b = &context->background;
  int *queued = &b->helpers_queued[helper][csr->rowptr_type == WLM_I64][csr->colind_type == WLM_I64];
  wlm_status status = WLM_OK;
  *on_host = b->wanted && !wlmi_has_helper(context, helper, csr);
  if (!*on_host) return WLM_OK;
  pthread_mutex_lock(&b->lock);
  if (!*queued) {
    wlmi_background_job *job = wlmi_alloc_zero(1, sizeof *job);
    if (job) *job = (wlmi_background_job){.context = context, .types = *csr, .helper = helper};
    status = job ? append(b, job) : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compiling in the background");
    if (status != WLM_OK) wlmi_free(job);
    *queued = status == WLM_OK;
  }
  pthread_mutex_unlock(&b->lock);
  return status;
}

wlm_status wlmi_background_add(wlm_context *context, const wlmi_spec *spec, const wlmi_decision *decision,
                               const wlmi_hash *key, uint64_t generation, wlmi_upgrade **out) {
  const char *activation = spec->problem.epilogue.activation;
  wlmi_background_job *job = wlmi_alloc_zero(1, sizeof *job);
  wlmi_upgrade *upgrade = wlmi_alloc_zero(1, sizeof *upgrade);
  wlm_status status = WLM_ERR_OUT_OF_MEMORY;
  *out = NULL;
  if (!job || !upgrade) goto done;
  atomic_init(&upgrade->users, 2); /* users: the caller and the job */
  *job = (wlmi_background_job){.context = context,
                               .spec = *spec,
                               .activation = wlmi_strdup(activation),
                               .decision = *decision,
                               .key = *key,
                               .generation = generation,
                               .upgrade = upgrade};
  job->spec.problem.custom = NULL; /* its text stands in the spec */
  job->spec.problem.epilogue.activation = job->activation;
  if (activation && !job->activation) goto done;
  pthread_mutex_lock(&context->background.lock);
  status = append(&context->background, job);
  pthread_mutex_unlock(&context->background.lock);
done:
  if (status == WLM_OK) {
    *out = upgrade;
    return WLM_OK;
  }
  if (job) job->upgrade = NULL;
  free_job(job);
  wlmi_free(upgrade);
  return wlmi_fail(status, "compiling in the background");
}
