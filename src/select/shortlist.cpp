#include "select/shortlist.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/attempt.h"
#include "select/pareto_selector.h"

namespace thimble {
namespace {

// The cost of a step, in parts that techniques change by factors of their own.
struct Parts {
  double seconds = 0;
  double persistent = 0, carried = 0;
  double activations = 0;  // beside those, everything kept
  double working = 0;      // likewise, for the largest call

  static constexpr std::array<double Parts::*, 4> kFactors = {&Parts::seconds, &Parts::persistent,
                                                              &Parts::activations, &Parts::working};
};

Parts parts_of(const StepOption& step) {
  const auto number = [](Bytes bytes) { return static_cast<double>(bytes.count); };
  const Bounds& bounds = step.bounds();
  const double stays = number(bounds.persistent + bounds.carried);
  return {.seconds = bounds.without_recompute.seconds,
          .persistent = number(bounds.persistent),
          .carried = number(bounds.carried),
          .activations = std::max(1.0, number(bounds.without_recompute.live_peak) - stays),
          .working = std::max(1.0, number(bounds.largest_call) - stays)};
}

// A combination: of each technique a choice, 0 being none.
using Combination = std::vector<size_t>;

class Shortlist {
 public:
  Shortlist(std::unique_ptr<StepOption> plain, const Choices& choices, Machine& machine,
            OptionFactsByFlags& facts, const SearchLimits& limits)
      : requested_(plain->candidate().recipe),
        choices_(choices),
        machine_(machine),
        facts_(facts),
        limits_(limits),
        plain_nodes_(plain->nodes()),
        is_small_(plain_nodes_ < limits.small_nodes),
        plain_(parts_of(*plain)) {
    steps_.push_back(std::move(plain));
  }

  std::vector<std::unique_ptr<StepOption>> run() {
    build_singles();
    Combination none(choices_.size(), 0);
    std::vector<Combination> all;
    combine(none, 0, all);
    if (all.size() > limits_.all_combinations) {
      build_promising(all);
      let_smallest_recompute();
    } else {
      for (const Combination& combination : all) {
        if (StepOption* const step = build(combination)) let_recompute(*step);
      }
    }
    build_between();
    share_work();
    return std::move(steps_);
  }

 private:
  std::vector<Change> changes_of(const Combination& combination) const {
    std::vector<Change> changes;
    for (size_t t = 0; t < combination.size(); ++t) {
      if (combination[t] > 0) changes.push_back(choices_[t][combination[t] - 1]);
    }
    return changes;
  }

  // Null where techniques do not go together.
  StepOption* build(const Combination& combination) {
    const auto [at, fresh] = built_.try_emplace(combination, nullptr);
    if (std::ranges::count(combination, 0) == std::ssize(combination)) return steps_.front().get();
    if (!fresh) return at->second;
    const auto known = candidates_.extract(combination);
    return at->second = build(known ? std::move(known.mapped())
                                    : with_changes(requested_, changes_of(combination)));
  }
  StepOption* build(std::optional<Candidate> candidate) {
    if (!candidate) return nullptr;
    candidate->recomputes = false;
    OptionFacts& facts = facts_[flags_of(all_changes(*candidate))];
    if (facts.refused) return nullptr;
    auto option = if_allowed([&] {
      return std::make_unique<StepOption>(*std::move(candidate), machine_, facts, limits_);
    });
    facts.refused = !option;
    if (!option) return nullptr;
    steps_.push_back(*std::move(option));
    steps_.back()->release_graph();
    return steps_.back().get();
  }

  // A planner of larger ones would take too long.
  void let_recompute(StepOption& step) const {
    if (step.nodes() <= limits_.planned_nodes) step.let_recompute();
  }

  void share_work() {
    std::vector<StepOption*> planned;
    for (size_t i = 1; i < steps_.size(); ++i) {
      if (steps_[i]->candidate().recomputes) planned.push_back(steps_[i].get());
    }
    if (planned.size() <= limits_.planners) return;
    const double part = static_cast<double>(limits_.planners) / static_cast<double>(planned.size());
    for (StepOption* const step : planned) step->search_less(part);
  }

  // Of a large step, only what saves most of its activations may recompute.
  void build_singles() {
    for (size_t t = 0; t < choices_.size(); ++t) {
      singles_.emplace_back();
      for (size_t c = 1; c <= choices_[t].size(); ++c) {
        Combination combination(choices_.size(), 0);
        combination[t] = c;
        StepOption* const step = build(combination);
        singles_.back().push_back(step != nullptr ? std::optional(parts_of(*step)) : std::nullopt);
        const std::string_view technique = choices_[t][c - 1].technique;
        const bool saves_most =
            technique == "microbatch" || (technique == "precision" && c == choices_[t].size());
        if (step != nullptr && (is_small_ || saves_most)) let_recompute(*step);
      }
    }
  }

  void combine(Combination& combination, size_t technique, std::vector<Combination>& all) {
    if (technique == choices_.size()) {
      all.push_back(combination);
      return;
    }
    for (size_t c = 0; c <= choices_[technique].size(); ++c) {
      // By itself it may not go: 8-bit state, where nonzeros would have to move.
      combination[technique] = c;
      if (c == 0 || singles_[technique][c - 1]) combine(combination, technique + 1, all);
    }
    combination[technique] = 0;
  }

  Parts estimate(const Combination& combination) const {
    Parts parts = plain_;
    double carried = plain_.carried;
    for (size_t t = 0; t < combination.size(); ++t) {
      if (combination[t] == 0) continue;
      const Parts& single = *singles_[t][combination[t] - 1];
      for (double Parts::*part : Parts::kFactors) parts.*part *= single.*part / plain_.*part;
      carried = std::max(carried, single.carried);
    }
    const bool folds = changes(combination, "fold");
    parts.carried = folds ? 0 : carried * parts.persistent / plain_.persistent;
    return parts;
  }

  bool changes(const Combination& combination, std::string_view technique) const {
    for (size_t t = 0; t < combination.size(); ++t) {
      if (combination[t] > 0 && choices_[t].front().technique == technique) return true;
    }
    return false;
  }

  // Of all changes, and of the worst of them.
  std::pair<double, double> risk(const Combination& combination) const {
    double all = 0, worst = 0;
    for (size_t t = 0; t < combination.size(); ++t) {
      if (combination[t] == 0) continue;
      all += choices_[t][combination[t] - 1].risk;
      worst = std::max(worst, choices_[t][combination[t] - 1].risk);
    }
    return {all, worst};
  }

  double floor_of(const Parts& parts) const {
    return parts.persistent + parts.carried +
           std::min(parts.activations, limits_.working_calls * parts.working);
  }
  static double seconds_within(const Parts& parts, double budget) {
    const double without_recompute = parts.persistent + parts.carried + parts.activations;
    return budget >= without_recompute ? parts.seconds : kNever;
  }

  struct Entry {
    Combination combination;
    Parts parts;  // estimated, or, once it is built, its own
    double risk = 0, worst = 0;
    bool built = false;
    std::optional<bool> valid = {};  // when it was asked for
  };

  bool is_valid(Entry& entry) {
    if (!entry.valid) {
      auto candidate = with_changes(requested_, changes_of(entry.combination));
      entry.valid = candidate.has_value();
      candidates_[entry.combination] = std::move(candidate);
    }
    return *entry.valid;
  }

  // Builds the combinations that are fastest for some budget, of no more risk than each technique, and the
  // smallest. Building one corrects its estimate, and then the choice is repeated.
  void build_promising(const std::vector<Combination>& all) {
    std::vector<Entry> entries;
    double least = kNever;
    for (const Combination& combination : all) {
      const auto [all_risk, worst] = risk(combination);
      entries.push_back({combination, estimate(combination), all_risk, worst});
      least = std::min(least, floor_of(entries.back().parts));
    }
    build_smallest(entries);
    std::set<double> levels;  // of each technique, with lower risks
    for (const std::vector<Change>& changes : choices_) {
      levels.insert(std::ranges::max(changes, {}, &Change::risk).risk);
    }
    const double most = plain_.persistent + plain_.carried + plain_.activations;
    for (int i = 0; i < std::min(limits_.shortlist_tried, limits_.shortlist_budgets); ++i) {
      const double budget = least * std::pow(most / least, (i + 0.5) / limits_.shortlist_budgets);
      for (const double level : levels) {
        Entry* fastest = find_fastest(entries, budget, level);
        while (fastest != nullptr && !fastest->built && may_build_more()) {
          build(*fastest);
          fastest = find_fastest(entries, budget, level);
        }
      }
    }
  }

  void build(Entry& entry) {
    const StepOption* const step = build(entry.combination);
    entry.built = true;
    entry.valid = step != nullptr;
    if (step != nullptr) entry.parts = parts_of(*step);
  }

  // So large that building another would take too long.
  bool may_build_more() const {
    size_t nodes = 0;
    for (const auto& step : steps_) nodes += step->nodes();
    return nodes < limits_.built_nodes;
  }

  Entry* find_fastest(std::vector<Entry>& entries, double budget, double level) {
    Entry* fastest = nullptr;
    double seconds = kNever;
    for (Entry& entry : entries) {
      const double takes = seconds_within(entry.parts, budget) * (1 + entry.risk);
      if (entry.worst > level || takes >= seconds || !is_valid(entry)) continue;
      fastest = &entry;
      seconds = takes;
    }
    return fastest;
  }

  // The combinations that look smallest: of all, with each choice of the last resort, and without it.
  // Building them corrects their estimates. After a few rounds, the next ones differ little.
  void build_smallest(std::vector<Entry>& entries) {
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
      for (Entry* entry : smallest_of(entries)) {
        if (!entry->built) build(*entry);
        lean_.insert(entry->combination);
      }
    }
  }

  std::vector<Entry*> smallest_of(std::vector<Entry>& entries) {
    std::vector<Entry*> smallest_first;
    for (Entry& entry : entries) smallest_first.push_back(&entry);
    std::ranges::stable_sort(smallest_first, {},
                             [&](const Entry* e) { return floor_of(e->parts); });
    std::vector<Entry*> wanted;
    const auto want_one = [&](const auto& is_such) {
      for (Entry* entry : smallest_first) {
        const bool fresh = std::ranges::find(wanted, entry) == wanted.end();
        if (!fresh || !is_such(*entry) || !is_valid(*entry)) continue;
        wanted.push_back(entry);
        return;
      }
    };
    for (int i = 0; i < limits_.smallest_combinations; ++i) {
      want_one([](const Entry&) { return true; });
    }
    for (size_t choice = 0; choice <= choices_.back().size(); ++choice) {
      want_one([&](const Entry& entry) { return entry.combination.back() == choice; });
    }
    return wanted;
  }

  // Where so much can be combined, there is a plan that computes nothing again for every budget but the
  // smallest: beside techniques alone, only the smallest combinations may, of
  // those that were built for being small: that does not depend on times.
  void let_smallest_recompute() {
    std::vector<std::pair<Bytes, const Combination*>> smallest_first;
    for (const auto& [combination, step] : built_) {
      if (step == nullptr || !lean_.contains(combination)) continue;
      smallest_first.emplace_back(step->bounds().least, &combination);
    }
    std::ranges::stable_sort(smallest_first, {}, [](const auto& entry) { return entry.first; });
    const auto let = [&](int count, const auto& is_such) {
      for (const auto& [least, combination] : smallest_first) {
        if (count == 0) return;
        if (!is_such(*combination)) continue;
        let_recompute(*built_[*combination]);
        --count;
      }
    };
    let(limits_.smallest_combinations, [](const Combination&) { return true; });
    for (size_t choice = 0; choice <= choices_.back().size(); ++choice) {
      let(1, [&](const Combination& combination) { return combination.back() == choice; });
    }
  }

  // Rows of a microbatch between those of what was built, all else alike, where fewer rows are slower.
  // They come last, so that nothing else is left out for them, and compute everything once. A large step
  // would take too long.
  void build_between() {
    const auto technique = std::ranges::find(
        choices_, "microbatch", [](const auto& changes) { return changes.front().technique; });
    if (technique == choices_.end() || !is_small_) return;
    const auto t = static_cast<size_t>(technique - choices_.begin());
    std::vector<Combination> neighbours;
    for (const auto& [combination, step] : built_) {
      if (step != nullptr && combination[t] > 0) neighbours.push_back(combination);
    }
    const auto techniques = [](const Combination& c) {
      return c.size() - std::ranges::count(c, 0);
    };
    std::ranges::stable_sort(neighbours, {}, techniques);
    std::set<Combination> seen;  // with the smaller rows of a gap
    for (const Combination& neighbour : neighbours) {
      for (const size_t fewer : {neighbour[t], neighbour[t] + 1}) {
        Combination gap = neighbour;
        gap[t] = fewer;
        if (is_gap(t, fewer) && seen.insert(gap).second) fill(gap, t);
      }
    }
  }

  // Whether time could be saved between that choice of rows and the one before it.
  bool is_gap(size_t t, size_t fewer) const {
    if (fewer < 2 || fewer > choices_[t].size()) return false;
    const auto& a = singles_[t][fewer - 2];
    const auto& b = singles_[t][fewer - 1];
    return a && b && b->seconds > kNearTie * a->seconds;
  }

  void fill(const Combination& gap, size_t t) {
    Combination others = gap;
    others[t] = 0;
    const Change& more = choices_[t][gap[t] - 2];
    for (const Change& rows : microbatches_between(requested_, more, choices_[t][gap[t] - 1])) {
      if (nodes_between_ + plain_nodes_ > limits_.between_nodes) return;
      std::vector<Change> changes = changes_of(others);
      changes.push_back(rows);
      const StepOption* const step = build(with_changes(requested_, std::move(changes)));
      if (step != nullptr) nodes_between_ += step->nodes();
    }
  }

  const Recipe requested_;
  const Choices& choices_;
  Machine& machine_;
  OptionFactsByFlags& facts_;
  const SearchLimits& limits_;
  const size_t plain_nodes_;
  const bool is_small_;
  const Parts plain_;
  std::vector<std::unique_ptr<StepOption>> steps_;
  std::map<Combination, StepOption*> built_;
  std::set<Combination> lean_;                                  // built since they look smallest
  std::map<Combination, std::optional<Candidate>> candidates_;  // asked for, and not built
  std::vector<std::vector<std::optional<Parts>>> singles_;      // by technique and choice
  size_t nodes_between_ = 0;                                    // see build_between()
};

}  // namespace

std::vector<std::unique_ptr<StepOption>> options_worth_trying(std::unique_ptr<StepOption> requested,
                                                              const Choices& choices,
                                                              Machine& machine,
                                                              OptionFactsByFlags& facts,
                                                              const SearchLimits& limits) {
  return Shortlist(std::move(requested), choices, machine, facts, limits).run();
}

}  // namespace thimble
