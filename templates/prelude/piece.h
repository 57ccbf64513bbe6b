% local bytes = vector * problem.dense_bytes
% local word = bytes == 16 and "uint4" or bytes == 8 and "uint2" or "unsigned int"
% local paired = problem.dense_bytes == 2 and vector > 1
% local count = paired and vector // 2 or vector; local function load(v) return ("__ldg(b + %s)"):format(problem.b_steps and v .. " * step" or v) end
/* A piece of a row of B or C: @{vector} neighbouring elements, moved at once where the pointers and leading dimensions
 * are aligned for it and by element elsewhere. A template asks wlm_aligned once, and writes its loop for either answer, or
 * the loads of a batch (`ways`). @{vector} divides n, so a piece lies inside a row or past its end as a whole. */
% if paired then
/* Half types stay in pairs until they are used, which takes half the registers. */
struct __align__(@{bytes}) wlm_piece { unsigned int at[@{count}]; };
WLM_FN wlm_acc_t wlm_piece_at(struct wlm_piece piece, int v) { return wlm_widen((wlm_b_t)(piece.at[v / 2] >> v % 2 * 16)); }
% else
struct __align__(@{bytes}) wlm_piece { wlm_b_t at[@{count}]; };
WLM_FN wlm_acc_t wlm_piece_at(struct wlm_piece piece, int v) { return wlm_widen(piece.at[v]); }
% end
struct __align__(@{math.min(16, problem.sum_bytes * vector & -(problem.sum_bytes * vector))}) wlm_sums { /* what becomes a piece of C */
  @{merged("wlm_acc_t", sum)} at[@{vector}];
% if problem.attention ~= "none" then include("prelude/attention_sums.h", { declared = true }) end
};

WLM_FN int wlm_aligned(const struct wlm_args *args) {
  const unsigned long long places = (unsigned long long)args->b |
% if problem.attention ~= "none" then
                                    (unsigned long long)args->x |
% end
% if problem.products then
                                    (unsigned long long)args->products.q |@{problem.products.keys and " (unsigned long long)args->products.k |" or ""}
                                    (unsigned long long)(args->attention.term_stride * (long long)sizeof(wlm_b_t)) |
% end
                                   @{places} @{if_rows "(unsigned long long)args->c"} |
                                    (unsigned long long)((args->ldb | @{if_rows "args->ldc"}) * (long long)sizeof(wlm_b_t));
  return (places & @{bytes - 1}) == 0@{b_stepped " && args->steps.b == 1"}@{from(" && (" .. if_rows "(unsigned long long)args->arg" .. " & " .. math.min(16, problem.stored_bytes * vector) - 1 .. ") == 0")};
}

/* A piece of B, or of what is laid out like it. */
WLM_FN struct wlm_piece wlm_read_piece(const wlm_b_t *b@{b_stepped ", long long step"}, int aligned) {
  struct wlm_piece piece;
% if bytes >= 4 and vector > 1 then
  if (aligned) {
#ifdef __CUDA_ARCH__
    union { @{word} whole; struct wlm_piece piece; } read;
% if bytes == 16 and problem.sample ~= "none" then
    read.whole = wlm_read16_kept(b);
% else
    read.whole = __ldg((const @{word} *)b);
% end
    return read.piece;
#else
    return *(const struct wlm_piece *)b;
#endif
  }
% end
% if paired and not problem.b_steps then
  /* By words, whatever b is: its first pair may lie across two of them, and then the first word begins before b. */
  (void)aligned;
  const int across = (int)((unsigned long long)b >> 1 & 1u);
  const unsigned int *words = (const unsigned int *)(b - across);
% for v = 0, count - 1 do
  const unsigned int word@{v} = __ldg(words + @{v});
% end
  const unsigned int word@{count} = across ? __ldg(b + @{vector - 1}) : 0;
% for v = 0, count - 1 do
  piece.at[@{v}] = across ? word@{v} >> 16 | word@{v + 1} << 16 : word@{v};
% end
% else
  (void)aligned;
% for v = 0, count - 1 do
  piece.at[@{v}] = @{paired and load(2 * v) .. " | (unsigned int)" .. load(2 * v + 1) .. " << 16" or load(v)};
% end
% end
  return piece;
}

WLM_FN struct wlm_piece wlm_load_piece(const wlm_b_t *b@{b_stepped ", long long step"}, int aligned) {
#if WLM_USES_B
  return wlm_read_piece(b@{b_stepped ", step"}, aligned);
#else
  struct wlm_piece piece;
  (void)b;@{b_stepped " (void)step;"}
  (void)aligned;
% for v = 0, count - 1 do
  piece.at[@{v}] = 0;
% end
  return piece;
#endif
}

WLM_FN struct wlm_sums wlm_begin_sums(@{from("long long place", "void")}) {
  struct wlm_sums sums;
% if problem.attention ~= "none" then include("prelude/attention_sums.h", { declared = false }) end
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_init(@{from "place"});
% end
  return sums;
}

% if not problem.walk then
WLM_FN struct wlm_sums wlm_fold(struct wlm_sums sums, wlm_acc_t a, struct wlm_piece piece@{at "long long place"}) {
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_reduce(sums.at[@{v}], wlm_message(a, wlm_piece_at(piece, @{v}))@{at "place"});
% end
  return sums;
}

% end
WLM_FN struct wlm_sums wlm_finish_sums(struct wlm_sums sums, long long degree) {
% for v = 0, vector - 1 do
  sums.at[@{v}] = wlm_finish(sums.at[@{v}], degree);
% end
  return sums;
}

/* Of a row that has edges, which spares the question. */
WLM_FN struct wlm_sums wlm_finish_edges(struct wlm_sums sums, int degree) {
  WLM_ASSUME(degree > 0);
  return wlm_finish_sums(sums, degree);
}

% if problem.attention ~= "none" then include "prelude/attention.h" elseif problem.arg ~= "none" and not problem.walk then
% include "prelude/places.h"
% end
% if problem.walk then include "prelude/message.h" else
WLM_FN void wlm_store_piece(const struct wlm_args *args, wlm_c_t *c, long long column, struct wlm_sums sums, int aligned@{of "long long row"}) {
  @{from("wlm_store_places(args, c, sums, aligned); ", only "sums = wlm_close_sums(args, row, column, sums); ")}if (args->scaled) { /* as wlm_scale does, with one test of beta */
    const wlm_acc_t alpha = (wlm_acc_t)args->alpha, beta = (wlm_acc_t)args->beta;
% for v = 0, vector - 1 do
    sums.at[@{v}]@{value} *= alpha;
% end
    if (args->beta != 0) {
% for v = 0, vector - 1 do
      sums.at[@{v}]@{value} += beta * wlm_widen(c[@{in_c(v)}]);
% end
    }
  }
% for v = 0, vector - 1 do
  const wlm_c_t c@{v} = wlm_result(args, column + @{v}, sums.at[@{v}]@{value});
% end
% if bytes >= 4 and vector > 1 then
  if (aligned@{stepped " && args->steps.c == 1"}) {
    struct wlm_piece piece;
% for v = 0, count - 1 do
% if paired then
    piece.at[@{v}] = c@{2 * v} | (unsigned int)c@{2 * v + 1} << 16;
% else
    piece.at[@{v}] = c@{v};
% end
% end
#ifdef __CUDA_ARCH__
    union { struct wlm_piece piece; unsigned int word[@{bytes // 4}]; } written;
    written.piece = piece;
    wlm_write@{bytes}(c, written.word);
#else
    *(struct wlm_piece *)c = piece;
#endif
    return;
  }
% end
  (void)aligned;
% for v = 0, vector - 1 do
  c[@{in_c(v)}] = c@{v};
% end
}
% end

WLM_FN const wlm_b_t *wlm_b_row(const struct wlm_args *args, const wlm_b_t *b, wlm_colind_t column) {
% if problem.colind_type == "i32" then
  return (const wlm_b_t *)wlm_step(b, (unsigned int)column, (unsigned int)(args->ldb * (long long)sizeof(wlm_b_t)));
% else
  return b + column * args->ldb;
% end
}

/* Row k, counted from the row that c stands in, where k is small. */
WLM_FN wlm_c_t *wlm_c_row(const struct wlm_args *args, wlm_c_t *c, int k) {
  return (wlm_c_t *)wlm_step(c, (unsigned int)k, (unsigned int)(args->ldc * (long long)sizeof(wlm_c_t)));
}
