// Every threshold of the plan searches, each with its reason and the day it was last tried. All are
// counts, shares and ratios, never seconds: a step has the same plans on a fast machine and on a
// busy one. `bench_optimality --limits NAME=VALUE` and bench/ablate.py show the worth of one
// (docs/results/ablation.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// The effort of the eviction search for steps of up to so many evictable values.
struct EvictionEffort {
  int64_t values = 0;
  int first_budgets = 0;     // from keeping everything to the least, by equal ratios
  int budgets = 0;           // answers, at most
  size_t beam = 0;           // partial plans kept after each stage
  size_t widest = 0;         // the same, in a last try after dead ends
  size_t covers = 0;         // ways to evict tried when memory runs out
  bool exact_prices = true;  // a way is priced as a whole, not as the sum of its evictions
  int64_t work = 0;          // visits of values, over all budgets
};

struct SearchLimits {
  // ---- Which searches there are ------------------------------------------------------------------
  bool policies = true;            // a promise: no named policy beats `optimal` in its own arena
  bool always_kept = true;         // each policy's schedule also with statistics kept
  bool chain = true;               // segments, and values kept inside each block
  bool between = true;             // further points of the chain's frontier, between its anchors
  bool halvings = true;            // segments halved recursively: the least memory of long chains
  bool evictions = true;           // eviction by beam search, by the request's times
  bool evictions_by_work = true;   // the same by FLOPs and bytes: another floor
  bool evictions_by_bytes = true;  // the same by bytes alone
  bool slack = true;               // schedules also with their slack filled
  bool slack_left = true;          // also with 1 % of the peak left free, for layouts that fail
  bool reduce_peak = true;         // from the leanest plans down, move by move

  // ---- How many schedules (2026-11-15) -----------------------------------------------------------
  // A graph of n nodes gets pool_nodes / n of the schedules that a small one gets, and never less
  // than the least: 48,000 nodes get 8 anchors of 32.
  int64_t pool_nodes = 12'000;
  size_t least_anchors = 7, anchors = 32;  // of the chain's frontier
  size_t least_between = 4, most_between = 16;
  size_t least_halvings = 3, most_halvings = 12;
  // Slack is not filled in a schedule that another clearly beats. One that is a little slower may
  // overtake with its slack filled.
  double clearly_slower = 1.05;
  // In larger graphs, filling slack takes as long as all else: only schedules that nothing beats
  // get it.
  int64_t large_nodes = 16'000;

  // ---- The chain search (2026-11-15) -------------------------------------------------------------
  int chain_rooms = 14;        // bytes that a segment may recompute, by equal ratios up to all
  int chain_rooms_tried = 14;  // the smallest so many of these
  int chain_prices = 16;       // notches of a kept byte's price, over five decades
  int chain_mixtures = 12;     // of neighbours in price: first blocks as one, the rest as the other
  // How much less room the last segment has than the first: more values are kept before it.
  std::array<double, 4> chain_shrinks = {0.0, 0.35, 0.6, 0.8};
  size_t chain_buckets = 128, long_chain_buckets = 64;  // states at a block
  size_t long_chain = 1000;  // blocks; longer chains have short segments and coarser states
  size_t majors = 10;        // values of a block whose subsets are all tried
  // Values that are smaller than the block's largest by this factor are always kept.
  int64_t minor_share = 32;

  // ---- The eviction search (2026-11-15) ----------------------------------------------------------
  size_t eviction_nodes = 256;  // forward nodes; up to these it runs beside the chain search,
  int64_t lumpy_share = 4;      // and beyond where one block makes more than this part of all bytes
  std::array<EvictionEffort, 3> eviction_efforts = {{
      {64, 16, 200, 48, 192, 12, true, 60'000'000},
      {256, 24, 48, 6, 6, 6, false, 60'000'000},
      {1024, 12, 16, 2, 2, 4, false, 60'000'000},
  }};
  double narrow_gap = 1e-3;  // between budgets, by their logarithm: not searched inside
  int bisections = 5;        // failures on the way down
  int repairs = 4;           // of a budget: after a dead end, with a value pinned
  double work_per_flop = 1e-11, work_per_byte = 5e-10;  // seconds, in place of measured times

  // ---- Values that are never worth recomputing (2026-11-15) --------------------------------------
  double dear = 32;      // a byte takes this many times the average to recompute
  double little = 5e-3;  // share of the bytes that the backward pass reads, all together

  // ---- Slack (2026-11-15) ------------------------------------------------------------------------
  double plentiful_price = 1e-3;  // price of a byte at calls with room for all values
  int slack_rounds = 3;           // a round frees bytes for the next, but hardly ever many
  size_t slack_long = 4000;       // calls; longer schedules get one round

  // ---- The floor (2026-11-19): the smallest plan, by bytes alone -----------------------------------
  int floor_rooms = 4;           // the smallest so many of chain_rooms
  size_t floor_points = 4;       // points of the chain search with the least memory
  int64_t floor_nodes = 12'000;  // in place of pool_nodes
  // Budgets for the eviction search, by equal ratios, and failures on the way down. Its work, and its
  // width at most: a narrow beam gets further down for the same work.
  int floor_budgets = 16, floor_bisections = 10;
  int64_t floor_work = 20'000'000;
  size_t floor_beam = 12, floor_widest = 48, floor_covers = 6;

  // ---- Reducing the peak (2026-11-19) ------------------------------------------------------------
  size_t peak_starts = 2;  // schedules of least memory from searches, and half as many of policies
  double peak_slowest = 1.5;        // slowdown over the fastest plan of least memory found before
  int64_t peak_worth = 200;         // a smaller plan counts if it saves one part in so many
  int64_t peak_tries = 12'000;      // schedules tried
  int64_t peak_work = 400'000'000;  // tries times nodes squared: a try of a large graph takes long
  int64_t peak_part = 50;           // the goal saves one part in so many of the present peak
  size_t peak_followed = 40;        // partial sequences of moves kept in parallel
  int peak_depth = 12;              // moves of a sequence without progress
  int64_t peak_moves = 16;          // moves to the goal, at most: smaller values are not moved

  // ---- Which combinations of techniques are built (2026-11-16) -----------------------------------
  size_t all_combinations = 40;  // up to this number, all are built; else the promising ones
  // Budgets for which the fastest is built, and how many of them are tried, from the least. A tier of
  // which only the floor is asked tries fewer.
  int shortlist_budgets = 24, shortlist_tried = 24, floor_shortlist_tried = 6;
  int smallest_combinations = 3;  // built since they look smallest
  double working_calls = 1.5;     // a step's memory over its largest call's, as seen on the zoo
  size_t built_nodes = 60'000;    // of all steps together: a command may build no more
  size_t between_nodes = 20'000;  // of steps of rows in between
  size_t planned_nodes = 12'000;  // of a step that may recompute
  size_t small_nodes = 4'000;     // of a step that may recompute with each technique alone
  // Combinations that may recompute, each with searches of its own. More of them share the work of so
  // many, so that no budget takes much longer than another. The step as typed counts apart.
  // (2026-11-19)
  size_t planners = 12;
  size_t encoded_nodes = 3'000;  // of all encodings of a step together,
  size_t least_encodings = 6, most_encodings = 16;

  // ---- Progress ----------------------------------------------------------------------------------
  // Called several times a second. An exception from it ends the search. Null: no call.
  const std::function<void()>* watch = nullptr;
};

// Limits for a search of about that many seconds on a typical core, in place of
// kUsualSearchSeconds. Counts are in proportion, so plans depend on the seconds asked for and on no
// clock. 0: the least.
inline constexpr double kUsualSearchSeconds = 10;
SearchLimits limits_within(double seconds);
// Reduces the work of searches for fast plans to that part. Floors do not change.
void scale_searches(SearchLimits& limits, double part);

inline void call_watch(const SearchLimits& limits) {
  if (limits.watch != nullptr) (*limits.watch)();
}

// One limit by name, for ablations.
struct NamedLimit {
  std::string name;
  double value = 0;
};
std::vector<NamedLimit> named_limits(const SearchLimits& limits);
// "chain=off", "anchors=64". UserError if there is no limit of that name.
void set_limit(SearchLimits& limits, std::string_view text);

}  // namespace thimble
