/* The arguments that only kernels for column-major B and C have. They stand behind those of batches at the end of struct
 * wlm_args in their sources, and in struct wlm_batch_launch of the library. Like args.h it includes nothing. */
#ifndef WLM_STEPS_ARGS_H
#define WLM_STEPS_ARGS_H

/* Elements from one column to the next one: 1, or of an array that is column-major the caller's leading dimension. Then
 * ldb or ldc is 1, the elements from one row to the next one. */
struct wlm_steps {
  long long b, c;
};

#endif
