% local bytes = vector * problem.stored_bytes
% local chunk = math.min(16, bytes)
% local each = chunk // problem.stored_bytes
/* The positions of a piece of C, beside it: stored @{chunk} bytes at once where a piece is, which wlm_aligned answers for both. */
struct __align__(@{chunk}) wlm_places { @{problem.stored_type} at[@{each}]; };
WLM_FN void wlm_store_places(const struct wlm_args *args, const wlm_c_t *c, struct wlm_sums sums, int aligned) {
  @{problem.stored_type} *arg = wlm_arg_of(args, c);
% if vector > 1 then
  if (aligned@{stepped " && args->steps.c == 1"}) {
% for first = 0, vector - 1, each do
    struct wlm_places places@{first};
% for v = 0, each - 1 do
    places@{first}.at[@{v}] = wlm_arg(args, sums.at[@{first + v}].place);
% end
#ifdef __CUDA_ARCH__
    union { struct wlm_places places; unsigned int word[@{chunk // 4}]; } written@{first};
    written@{first}.places = places@{first};
    wlm_write@{chunk}(arg + @{first}, written@{first}.word);
#else
    *(struct wlm_places *)(arg + @{first}) = places@{first};
#endif
% end
    return;
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  arg[@{in_c(v)}] = wlm_arg(args, sums.at[@{v}].place);
% end
}

