// optimal: the fastest schedule found whose arena fits the budget. Cuts the forward pass into a
// chain of blocks, chooses segments and what is kept inside each block by dynamic programming, and
// closes the loop with the real layout. Candidates come from one frontier that does not depend on the
// budget; a smaller budget chooses further down. (Real arenas follow the modelled ones closely, not
// strictly: two budgets close together may come out in the wrong order.)
#include <algorithm>
#include <map>
#include <unordered_map>

#include "plan/chain_search.h"
#include "plan/halving.h"
#include "plan/make_plan.h"
#include "plan/policy.h"

namespace thimble {
namespace {

// Carries out the choices of the chain search.
class Chosen final : public Retention {
 public:
  Chosen(const ForwardPass& pass, const std::vector<Block>& blocks,
         const std::vector<const std::vector<BlockOption>*>& options,
         const std::vector<BlockChoice>& choices)
      : pass_(pass), block_of_(pass.size()), stays_(pass.graph.values.size(), false),
        crosses_(pass.graph.values.size(), false) {
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (int p = blocks[b].begin; p < blocks[b].end; ++p) block_of_[static_cast<size_t>(p)] = b;
      const std::vector<ValueId> inner = inner_values(pass, blocks[b]);
      const BlockOption& option = (*options[b])[static_cast<size_t>(choices[b].option)];
      for (const int i : option.kept) stays_[inner[static_cast<size_t>(i)].at()] = true;
      for (const ValueId value : blocks[b].enters) {
        crosses_[value.at()] = true;
        if (b > 0 && choices[b - 1].ends_segment) stays_[value.at()] = true;
      }
    }
  }

  bool stays_after_forward(ValueId value) override { return stays_[value.at()]; }
  void replayed(const std::vector<int>&, NodeId reader) override {
    const NodeId forward = pass_.graph[reader].differentiates;
    reader_ = forward.valid() ? pass_.position[forward.at()] : -1;
  }
  // In the block that goes backward now everything stays; before it, what the next blocks start
  // from and what was costly.
  bool stays_after_replay(ValueId value) override {
    const size_t made = block_of_[static_cast<size_t>(pass_.made_at(value))];
    if (reader_ >= 0 && made == block_of_[static_cast<size_t>(reader_)]) return true;
    const bool costly = pass_.graph[pass_.maker(value)].op->recompute == Recompute::costly;
    return crosses_[value.at()] || stays_[value.at()] ||
           (costly && pass_.read_backward[value.at()]);
  }

 private:
  const ForwardPass& pass_;
  std::vector<size_t> block_of_;  // by position
  std::vector<bool> stays_, crosses_;  // by value
  int reader_ = -1;
};

struct Candidate {
  Schedule schedule;
  Bytes arena;
  double seconds = 0;
};

class Optimizer {
 public:
  explicit Optimizer(const PlanRequest& request)
      : request_(request), pass_(request.graph),
        blocks_(cut_into_blocks(pass_, request.costs)) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      // The block behind decides what leaves, so it belongs to the kind.
      const size_t next = b + 1 < blocks_.size() ? blocks_[b + 1].kind : 0;
      const size_t key = blocks_[b].kind * 31 + next;
      auto [entry, fresh] = kinds_.try_emplace(key);
      if (fresh) entry->second = block_options(pass_, request.costs, blocks_, b);
      options_.push_back(&entry->second);
    }
  }

  Schedule run() {
    consider_keep_all();
    if (!request_.budget || best_) return finish();
    search_frontier();
    consider_policy("drop_cheap");
    if (!best_) {
      consider_policy("sqrt_segments");
      consider_policy("chen_budget");
      consider_low_memory();
    }
    return finish();
  }

 private:
  bool fits(const Candidate& candidate) const {
    return !request_.budget || candidate.arena <= *request_.budget;
  }

  Candidate candidate_of(Schedule schedule) const {
    const Plan plan = lay_out(request_, schedule);
    return {std::move(schedule), plan.arena, plan.predicted_seconds};
  }

  bool consider(Candidate candidate) {
    if (!smallest_ || candidate.arena < smallest_->arena) smallest_ = candidate;
    if (!fits(candidate)) return false;
    const bool better = !best_ || std::pair(candidate.seconds, candidate.arena) <
                                      std::pair(best_->seconds, best_->arena);
    if (better) best_ = std::move(candidate);
    return true;
  }

  void consider_keep_all() {
    const std::vector<bool> all(request_.graph.values.size(), true);
    consider(candidate_of(schedule_keeping(pass_, all)));
  }

  void consider_policy(std::string_view name) {
    consider(candidate_of(find_policy(name)->schedule(request_)));
  }

  // The frontier goes from most memory to least: the first point whose real arena fits is the one.
  void search_frontier() {
    const std::vector<ChainPoint> frontier = chain_frontier(blocks_, options_);
    size_t too_large = 0;  // points before this one do not fit
    size_t fits_at = frontier.size();
    while (too_large < fits_at) {
      const size_t middle = (too_large + fits_at) / 2;
      Chosen retention(pass_, blocks_, options_, frontier[middle].choices);
      if (consider(candidate_of(schedule_with(pass_, retention)))) {
        fits_at = middle;
      } else {
        too_large = middle + 1;
      }
    }
  }

  // Segments whose insides are halved recursively, from many segments to one.
  void consider_low_memory() {
    for (const size_t segments : {64, 45, 32, 23, 16, 11, 8, 6, 4, 3, 2, 1}) {
      if (segments > 1 && segments * 2 > blocks_.size()) continue;
      Halving retention(pass_, blocks_, segments);
      consider(candidate_of(schedule_with(pass_, retention)));
    }
  }

  Schedule finish() { return std::move((best_ ? best_ : smallest_)->schedule); }

  const PlanRequest& request_;
  const ForwardPass pass_;
  const std::vector<Block> blocks_;
  std::map<size_t, std::vector<BlockOption>> kinds_;
  std::vector<const std::vector<BlockOption>*> options_;  // by block
  std::optional<Candidate> best_;      // fastest that fits
  std::optional<Candidate> smallest_;
};

Schedule schedule(const PlanRequest& request) {
  return Optimizer(request).run();
}

}  // namespace

extern const Policy policy_optimal;
const Policy policy_optimal{"optimal", "the fastest plan found that fits the budget", schedule};

}  // namespace thimble
