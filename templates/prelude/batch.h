/* The arguments of one product of a batch. Stands behind the prelude of either target. */
WLM_FN struct wlm_args wlm_product_args(struct wlm_args args, long long product) {
  args.values = (const char *)args.values + product * args.batch.values;
  args.b = (const char *)args.b + product * args.batch.b;
  args.c = (char *)args.c + product * args.batch.c;
  args.x = (const char *)args.x + product * args.batch.x;
  args.arg = (char *)args.arg + product * args.batch.arg;
  args.workspace = (char *)args.workspace + product * args.batch.workspace;
  return args;
}
