/* The arguments that only messages have. They stand at the end of struct wlm_args in the sources of their kernels, and
 * behind it in struct wlm_message_launch of the library, which is the same memory. Like args.h it includes nothing. */
#ifndef WLM_MESSAGE_ARGS_H
#define WLM_MESSAGE_ARGS_H

enum { WLM_KERNEL_OPERANDS = 16, WLM_KERNEL_RESULTS = 6 };

struct wlm_operands {
  const void *in[WLM_KERNEL_OPERANDS]; /* in the order of the message's table */
  long long in_ld[WLM_KERNEL_OPERANDS]; /* of `kept`: draws below this drop an edge; wide or narrow is the factor of other edges */
  double wide[WLM_KERNEL_OPERANDS]; /* numbers of the call, in both types of accumulators: converting takes time */
  float narrow[WLM_KERNEL_OPERANDS];
  void *out[WLM_KERNEL_RESULTS];
  long long out_ld[WLM_KERNEL_RESULTS];
  void *place[WLM_KERNEL_RESULTS]; /* positions of max and min */
};

#endif
