/* The command `warploom bench SUITE ...`. */
#ifndef WLM_BENCH_BENCH_H
#define WLM_BENCH_BENCH_H

/* argv[0] is "bench". Exit code: 0 done, 2 the command line cannot be understood, 1 everything else. */
int wlmi_bench_main(int argc, char **argv);

#endif
