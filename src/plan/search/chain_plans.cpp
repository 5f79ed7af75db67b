#include "plan/search/chain_plans.h"

namespace thimble {
namespace {

// Carries out the choices of the chain search.
class Chosen final : public Retention {
 public:
  Chosen(const ForwardPass& pass, const std::vector<Block>& blocks,
         const std::vector<const std::vector<BlockOption>*>& options,
         const std::vector<BlockChoice>& choices)
      : pass_(pass),
        block_of_(pass.size()),
        stays_(pass.graph.values.size(), false),
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
  std::vector<size_t> block_of_;       // by position
  std::vector<bool> stays_, crosses_;  // by value
  int reader_ = -1;
};

}  // namespace

ChainPlans::ChainPlans(const ForwardPass& pass, const Costs& costs,
                       const std::vector<Block>& blocks, const SearchLimits& limits)
    : pass_(pass), blocks_(blocks) {
  if (!limits.chain) return;
  for (size_t b = 0; b < blocks.size(); ++b) {
    // The block behind decides what leaves, so it belongs to the kind.
    const size_t next = b + 1 < blocks.size() ? blocks[b + 1].kind : 0;
    auto [entry, fresh] = kinds_.try_emplace({blocks[b].kind, next});
    if (fresh) entry->second = block_options(pass, costs, blocks, b, limits);
    options_.push_back(&entry->second);
  }
  frontier_ = chain_frontier(blocks, options_, limits);
}

Schedule ChainPlans::schedule(size_t point) const {
  Chosen retention(pass_, blocks_, options_, frontier_[point].choices);
  return schedule_with(pass_, retention);
}

}  // namespace thimble
