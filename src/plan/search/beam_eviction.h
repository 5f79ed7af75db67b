// The eviction search (eviction_search.h) for one budget: a beam search over partial plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <ranges>
#include <tuple>
#include <vector>

#include "plan/search/evictable_set.h"
#include "plan/search/eviction_search.h"
#include "plan/search/search_limits.h"
#include "plan/search/step_memory_model.h"

namespace thimble {

// Beam search for the values to evict so that a step stays within one budget.
template <size_t Words>
class BeamEviction {
 public:
  using Set = EvictableSet<Words>;

  BeamEviction(const StepMemoryModel& memory, const EvictionEffort& effort, int repairs)
      : memory_(memory), effort_(effort), repairs_(repairs) {
    dead_.resize(memory.stages.size());
    for (size_t u = 0; u < memory.evictables.size(); ++u) {
      const int last = std::max(memory.last_use[u], memory.maker[u]);
      dead_[static_cast<size_t>(last)].add(static_cast<int>(u));
      if (!memory.never_stays[u]) continue;
      for (size_t s = memory.forward - 1; s < dead_.size(); ++s) dead_[s].add(static_cast<int>(u));
    }
    used_after_.resize(memory.stages.size());
    for (size_t u = 0; u < memory.evictables.size(); ++u) {
      const int last = memory.uses[u].empty() ? -1 : memory.uses[u].back();
      for (int s = memory.maker[u]; s < last; ++s) {
        used_after_[static_cast<size_t>(s)].add(static_cast<int>(u));
      }
    }
    ran_.resize(memory.forward, -1);
  }

  // A search may end where some value cannot be recomputed for lack of memory. Then that value is
  // pinned from where it was last in memory, and the search is repeated. The last try has a wider
  // beam and no pins.
  std::optional<EvictionPoint> solve(int64_t budget) {
    budget_ = budget;
    unpin();
    for (int i = 0; i < repairs_; ++i) {
      dead_end_.reset();
      if (auto found = search(effort_.beam)) return found;
      if (!dead_end_ || work_ > effort_.work || !pin_missing()) break;
    }
    if (effort_.widest <= effort_.beam) return std::nullopt;
    unpin();
    return search(effort_.widest);
  }

  int64_t work() const { return work_; }

 private:
  std::optional<EvictionPoint> search(size_t beam) {
    trail_.clear();
    std::vector<Label> labels = {Label{}};
    for (size_t s = 0; s < memory_.stages.size(); ++s) {
      std::vector<Label> next;
      for (const Label& label : labels) expand(label, s, next);
      if (next.empty()) {
        dead_end_ =
            DeadEnd{labels.front().present.evictables, labels.front().trail, static_cast<int>(s)};
        return std::nullopt;
      }
      if (work_ > effort_.work) return std::nullopt;
      thin(next, beam);
      for (Label& label : next) {
        trail_.push_back({label.present.evictables, label.trail});
        label.trail = static_cast<int>(trail_.size()) - 1;
      }
      labels = std::move(next);
    }
    const Label& best = *std::min_element(labels.begin(), labels.end(), by_seconds);
    return EvictionPoint{drops_along(best.trail), Bytes(best.peak), best.seconds};
  }

  struct Holding {
    Set evictables;
    int64_t bytes = 0;
  };
  struct Label {
    Holding present;     // after the stage
    double seconds = 0;  // of replays so far
    double bound = 0;    // lower bound on the seconds of replays to come
    int64_t peak = 0;
    int trail = -1;
    double total() const { return seconds + bound; }
  };
  struct DeadEnd {
    Set present;
    int trail = -1;
    int stage = 0;
  };
  struct Trail {
    Set present;
    int before = -1;
  };

  void unpin() { pinned_.assign(memory_.stages.size(), Set{}); }

  // Pins the value that the dead end misses, from where it was last in memory. False if that
  // changes nothing.
  bool pin_missing() {
    bool changed = false;
    for (const int u : call(dead_end_->stage).reads) {
      if (dead_end_->present.has(u)) continue;
      int trail = dead_end_->trail;
      for (int s = dead_end_->stage - 1; s >= 0; --s) {
        Set& pinned = pinned_[static_cast<size_t>(s)];
        changed = changed || !pinned.has(u);
        pinned.add(u);
        const int before = trail_[static_cast<size_t>(trail)].before;
        const Set present = before < 0 ? Set{} : trail_[static_cast<size_t>(before)].present;
        if (present.has(u) || makes(run_of(present, s), u)) break;
        trail = before;
      }
    }
    return changed;
  }

  static bool by_seconds(const Label& a, const Label& b) {
    return std::pair(a.seconds, a.peak) < std::pair(b.seconds, b.peak);
  }

  const EvictableUse& call(int stage) const { return memory_.calls[static_cast<size_t>(stage)]; }
  int64_t bytes(int evictable) const { return memory_.bytes[static_cast<size_t>(evictable)].count; }
  int64_t bytes(const Set& set) const {
    int64_t sum = 0;
    set.for_each([&](int u) { sum += bytes(u); });
    return sum;
  }

  void take(Holding& holding, int evictable) const {
    if (holding.evictables.has(evictable)) return;
    holding.evictables.add(evictable);
    holding.bytes += bytes(evictable);
  }
  void drop(Holding& holding, int evictable) const {
    if (!holding.evictables.has(evictable)) return;
    holding.evictables.remove(evictable);
    holding.bytes -= bytes(evictable);
  }
  void drop(Holding& holding, const Set& evictables) const {
    Set held = evictables;
    held.keep(holding.evictables);
    holding.evictables.remove(held);
    holding.bytes -= bytes(held);
  }

  // The calls of a stage: replays in forward order, then the stage's own node.
  struct StageRun {
    std::vector<int> calls;
    std::vector<Set> wanted_later;  // by call: evictable values that later calls of this run read
    double seconds = 0;             // of the replays
  };

  StageRun run_of(const Set& present, int stage) {
    StageRun run;
    std::vector<int> missing;
    const auto look_at = [&](int reader) {
      for (const int u : call(reader).reads) {
        if (!present.has(u)) missing.push_back(u);
      }
    };
    look_at(stage);
    while (!missing.empty()) {
      const int maker = memory_.maker[static_cast<size_t>(missing.back())];
      missing.pop_back();
      if (std::find(run.calls.begin(), run.calls.end(), maker) != run.calls.end()) continue;
      run.calls.push_back(maker);
      run.seconds += call(maker).seconds;
      look_at(maker);
    }
    std::sort(run.calls.begin(), run.calls.end());
    run.calls.push_back(stage);
    run.wanted_later.resize(run.calls.size());
    for (size_t i = run.calls.size() - 1; i-- > 0;) {
      run.wanted_later[i] = run.wanted_later[i + 1];
      for (const int u : call(run.calls[i + 1]).reads) run.wanted_later[i].add(u);
    }
    return run;
  }

  bool makes(const StageRun& run, int evictable) const {
    return std::any_of(run.calls.begin(), run.calls.end(), [&](int s) {
      return std::find(call(s).makes.begin(), call(s).makes.end(), evictable) !=
             call(s).makes.end();
    });
  }

  // Lower bound on the time of replays after `stage`: each value that is read later and not in
  // memory, and its missing inputs, recomputed once.
  double bound(const Set& present, int stage) {
    work_ += static_cast<int64_t>(memory_.evictables.size());
    needed_ = {};
    ++mark_;
    double seconds = 0;
    Set missing = used_after_[static_cast<size_t>(stage)];
    missing.remove(present);
    // From the last one down: inputs of a value were made before it.
    for (int u = missing.last(); u >= 0; u = missing.last()) {
      missing.remove(u);
      const int maker = memory_.maker[static_cast<size_t>(u)];
      int& ran = ran_[static_cast<size_t>(maker)];
      if (ran == mark_) continue;
      ran = mark_;
      seconds += call(maker).seconds;
      for (const int input : call(maker).reads) {
        needed_.add(input);
        if (input < u && !present.has(input)) missing.add(input);
      }
    }
    return seconds;
  }

  // A partial plan inside a stage.
  struct Partial {
    Holding present;
    size_t at = 0;  // next call of the run
    int64_t peak = 0;
    size_t covers = 1;  // ways to evict that are tried when memory runs out
  };

  void expand(const Label& label, size_t stage, std::vector<Label>& next) {
    const int s = static_cast<int>(stage);
    const StageRun run = run_of(label.present.evictables, s);
    const size_t first = next.size();
    std::vector<Partial> open = {{label.present, 0, label.peak, effort_.covers}};
    while (!open.empty() && next.size() < first + 2 * effort_.covers) {
      Partial partial = open.back();
      open.pop_back();
      if (advance(partial, run, s, open)) {
        Label done;
        done.present = partial.present;
        drop(done.present, dead_[stage]);
        done.seconds = label.seconds + run.seconds;
        done.peak = partial.peak;
        done.trail = label.trail;
        next.push_back(done);
      }
    }
    for (size_t i = first; i < next.size(); ++i)
      next[i].bound = bound(next[i].present.evictables, s);
  }

  // Runs until the stage is over (true), or until memory runs out: then `open` gets a partial plan
  // for each way to evict.
  bool advance(Partial& partial, const StageRun& run, int stage, std::vector<Partial>& open) {
    while (partial.at < run.calls.size()) {
      const bool replay = partial.at + 1 < run.calls.size();
      const EvictableUse& now = call(run.calls[partial.at]);
      const Set& wanted = run.wanted_later[partial.at];
      const auto& always = replay ? memory_.always_before : memory_.always;
      int64_t in_use = always[static_cast<size_t>(stage)].count + partial.present.bytes +
                       now.scratch.count + (replay ? now.passing.count : 0);
      for (const int u : now.makes) {
        if (!partial.present.evictables.has(u)) in_use += bytes(u);
      }
      // Overwriting an evictable value that no later call reads costs nothing. Another one would
      // have to be dropped.
      Set locked = wanted;
      for (const int u : now.reads) locked.add(u);
      for (const auto& overwrite : now.overwrites) {
        if (wanted.has(overwrite.evictable)) continue;
        if (useless_after(overwrite.evictable, stage)) {
          in_use -= overwrite.bytes.count;
        } else {
          locked.remove(overwrite.evictable);
        }
      }
      if (in_use > budget_) {
        std::vector<Set> ways = covers(partial.present.evictables, locked, in_use - budget_, stage);
        // One shortage after the other would multiply the ways: the later, the fewer.
        ways.resize(std::min(ways.size(), partial.covers));
        partial.covers = std::max<size_t>(1, partial.covers / 2);
        for (const Set& cover : std::views::reverse(ways)) {  // the cheapest is continued first
          Partial other = partial;
          drop(other.present, cover);
          finish_step(other, now, wanted, stage, in_use - bytes(cover));
          open.push_back(other);
        }
        return false;
      }
      finish_step(partial, now, wanted, stage, in_use);
    }
    return true;
  }

  bool useless_after(int evictable, int stage) const {
    return memory_.last_use[static_cast<size_t>(evictable)] <= stage;
  }

  void finish_step(Partial& partial, const EvictableUse& now, const Set& wanted, int stage,
                   int64_t in_use) {
    work_ += 8;
    partial.peak = std::max(partial.peak, in_use);
    for (const int u : now.makes) {
      if (wanted.has(u) || !useless_after(u, stage)) take(partial.present, u);
    }
    for (const int u : now.reads) {
      if (!wanted.has(u) && useless_after(u, stage)) drop(partial.present, u);
    }
    ++partial.at;
  }

  // An evictable value, with the time that recomputing it takes.
  struct Candidate {
    int evictable = 0;
    double price = 0;
    double rate = 0;  // of a byte
  };
  // A set of candidates to drop.
  struct Choice {
    Set dropped;
    size_t next = 0;  // candidates from here on may be added
    int64_t gain = 0;
    double price = 0;
  };

  // Sets of evictable values, each of at least `excess` bytes and none larger than need be,
  // cheapest first.
  std::vector<Set> covers(const Set& present, const Set& locked, int64_t excess, int stage) {
    std::vector<Choice> choices =
        sufficient_choices(cheapest_candidates(present, locked, excess, stage), excess);
    keep_cheapest(choices, 2 * effort_.covers);
    if (effort_.exact_prices) {
      for (Choice& choice : choices) {
        Set without = present;
        without.remove(choice.dropped);
        choice.price = bound(without, stage);
      }
      keep_cheapest(choices, effort_.covers);
    }
    std::vector<Set> sets;
    for (const Choice& choice : choices) {
      if (sets.size() == effort_.covers) break;
      sets.push_back(choice.dropped);
    }
    return sets;
  }

  // The cheapest few by byte that suffice several times over. Empty: all together do not suffice.
  std::vector<Candidate> cheapest_candidates(const Set& present, const Set& locked, int64_t excess,
                                             int stage) {
    bound(present, stage);  // leaves needed_: inputs of the replays to come
    std::vector<Candidate> candidates;
    present.for_each([&](int u) {
      if (locked.has(u) || bytes(u) == 0 || pinned_[static_cast<size_t>(stage)].has(u)) return;
      const bool wanted = used_after_[static_cast<size_t>(stage)].has(u) || needed_.has(u);
      const double price = wanted ? seconds_to_make(u, present) : 0.0;
      candidates.push_back({u, price, price / static_cast<double>(bytes(u))});
    });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.rate < b.rate; });
    int64_t gain = 0;
    size_t enough = 0;
    while (enough < candidates.size() && (enough < effort_.covers || gain < 4 * excess)) {
      gain += bytes(candidates[enough++].evictable);
    }
    candidates.resize(gain < excess ? 0 : enough);
    return candidates;
  }

  // Choices of at least `excess` bytes, extended candidate by candidate. Of choices that do not
  // suffice yet, the best few are extended further.
  std::vector<Choice> sufficient_choices(const std::vector<Candidate>& candidates,
                                         int64_t excess) const {
    // A choice with one candidate more, not yet made: most of them never are.
    struct Growth {
      double key = 0;
      size_t number = 0;  // in order of their finding, which decides between equals
      size_t choice = 0;  // of the level
      size_t candidate = 0;
    };
    std::vector<Choice> done;
    std::vector<Growth> growths;
    std::vector<Choice> level;
    if (!candidates.empty()) level.push_back({});
    while (!level.empty() && done.size() < 4 * effort_.covers) {
      growths.clear();
      const auto grown = [&](const Growth& growth) {
        const Candidate& candidate = candidates[growth.candidate];
        Choice with = level[growth.choice];
        with.dropped.add(candidate.evictable);
        with.next = growth.candidate + 1;
        with.gain += bytes(candidate.evictable);
        with.price += candidate.price;
        return with;
      };
      for (size_t c = 0; c < level.size(); ++c) {
        for (size_t i = level[c].next; i < candidates.size(); ++i) {
          const int64_t gained = level[c].gain + bytes(candidates[i].evictable);
          if (gained >= excess) {
            done.push_back(grown({0, 0, c, i}));
            continue;
          }
          // By price a byte gained, and of equal ones by the bytes that are still missing.
          const double worth =
              (level[c].price + candidates[i].price) / static_cast<double>(gained) +
              1e-30 * static_cast<double>(excess - gained);
          growths.push_back({worth, growths.size(), c, i});
        }
      }
      const size_t kept = std::min(growths.size(), effort_.covers);
      std::partial_sort(growths.begin(), growths.begin() + static_cast<ptrdiff_t>(kept),
                        growths.end(), [](const Growth& a, const Growth& b) {
                          return std::pair(a.key, a.number) < std::pair(b.key, b.number);
                        });
      std::vector<Choice> larger;
      for (size_t k = 0; k < kept; ++k) larger.push_back(grown(growths[k]));
      level = std::move(larger);
    }
    return done;
  }

  // The first `most` by price, then by bytes gained.
  static void keep_cheapest(std::vector<Choice>& choices, size_t most) {
    std::vector<size_t> order(choices.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t count = std::min(most, choices.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                      [&](size_t a, size_t b) {
                        return std::tuple(choices[a].price, choices[a].gain, a) <
                               std::tuple(choices[b].price, choices[b].gain, b);
                      });
    std::vector<Choice> first;
    for (size_t k = 0; k < count; ++k) first.push_back(choices[order[k]]);
    choices = std::move(first);
  }

  // The time to recompute an evictable value: its maker, and the makers of missing inputs.
  double seconds_to_make(int evictable, const Set& present) {
    ++mark_;
    double seconds = 0;
    missing_.assign(1, evictable);
    while (!missing_.empty()) {
      const int maker = memory_.maker[static_cast<size_t>(missing_.back())];
      missing_.pop_back();
      int& ran = ran_[static_cast<size_t>(maker)];
      if (ran == mark_) continue;
      ran = mark_;
      ++work_;
      seconds += call(maker).seconds;
      for (const int u : call(maker).reads) {
        if (!present.has(u)) missing_.push_back(u);
      }
    }
    return seconds;
  }

  // Removes dominated partial plans, and beyond the beam the least promising ones.
  void thin(std::vector<Label>& labels, size_t beam) const {
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return std::tuple(a.total(), a.seconds, a.peak) < std::tuple(b.total(), b.seconds, b.peak);
    });
    std::vector<Label> best;
    for (const Label& label : labels) {
      const bool useless = std::any_of(best.begin(), best.end(), [&](const Label& other) {
        return other.seconds <= label.seconds &&
               other.present.evictables.contains(label.present.evictables);
      });
      if (!useless) best.push_back(label);
      if (best.size() == beam) break;
    }
    labels = std::move(best);
  }

  Drops drops_along(int trail) const {
    Drops drops(memory_.stages.size());
    for (size_t s = memory_.stages.size(); s-- > 0;) {
      const Trail& here = trail_[static_cast<size_t>(trail)];
      for (size_t u = 0; u < memory_.evictables.size(); ++u) {
        const bool made = memory_.maker[u] <= static_cast<int>(s);
        if (made && !here.present.has(static_cast<int>(u)))
          drops[s].push_back(memory_.evictables[u]);
      }
      trail = here.before;
    }
    return drops;
  }

  const StepMemoryModel& memory_;
  const EvictionEffort& effort_;
  const int repairs_;
  std::vector<Set> dead_;    // by stage: evictable values not used after it, or marked `recompute`
  std::vector<Set> pinned_;  // by stage: not to be dropped there
  std::optional<DeadEnd> dead_end_;
  int64_t budget_ = 0;
  int64_t work_ = 0;
  std::vector<Trail> trail_;
  std::vector<Set> used_after_;  // by stage: made by then, and read later
  // Scratch of bound() and of seconds_to_make().
  Set needed_;
  std::vector<int> missing_;
  std::vector<int> ran_;  // by forward stage: mark_ when counted
  int mark_ = 0;
};

}  // namespace thimble
