// log_recursive: recursive halving. Of a stretch of blocks only what enters its middle is kept (and
// the middle of its second half, and so on); going backward, the first half is run again in the same
// way. O(log n) memory for O(n log n) forward work.
#include "plan/chain.h"
#include "plan/policy.h"

namespace thimble {
namespace {

class Halving final : public Retention {
 public:
  Halving(const ForwardPass& pass, const std::vector<Block>& blocks)
      : blocks_(blocks), block_of_(pass.size()), made_in_(pass.graph.values.size(), -1),
        stamp_(pass.graph.values.size(), 0) {
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (int p = blocks[b].begin; p < blocks[b].end; ++p) block_of_[static_cast<size_t>(p)] = b;
    }
    for (size_t v = 0; v < made_in_.size(); ++v) {
      if (!pass.is_forward[v]) continue;
      const int at = pass.made_at(make_id<ValueId>(v));
      made_in_[v] = static_cast<int>(block_of_[static_cast<size_t>(at)]);
    }
    split(0, blocks.size());
  }

  bool stays_after_forward(ValueId value) override { return stays(value); }
  bool stays_after_replay(ValueId value) override { return stays(value); }

  void replayed(const std::vector<int>& positions, NodeId) override {
    split(block_of_[static_cast<size_t>(positions.front())],
          block_of_[static_cast<size_t>(positions.back())] + 1);
  }

 private:
  // Marks what stays of a run over blocks [begin, end): what enters the middles, and everything in
  // the last block, whose backward pass comes next.
  void split(size_t begin, size_t end) {
    ++now_;
    while (end - begin > 1) {
      begin = (begin + end + 1) / 2;
      for (const ValueId value : blocks_[begin].enters) stamp_[value.at()] = now_;
    }
    leaf_ = static_cast<int>(begin);
  }

  bool stays(ValueId value) const {
    return made_in_[value.at()] == leaf_ || stamp_[value.at()] == now_;
  }

  const std::vector<Block>& blocks_;
  std::vector<size_t> block_of_;  // by position
  std::vector<int> made_in_;      // by value: block, or -1
  std::vector<int> stamp_;        // by value: the run in which it crossed a chosen cut
  int now_ = 0;
  int leaf_ = 0;
};

std::variant<Schedule, Infeasible> schedule(const PlanRequest& request) {
  const ForwardPass pass(request.graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, request.costs);
  Halving retention(pass, blocks);
  return schedule_with(pass, retention);
}

}  // namespace

extern const Policy policy_log_recursive;
const Policy policy_log_recursive{"log_recursive", "recursive halving: O(log n) memory, O(n log n) work",
                                  schedule};

}  // namespace thimble
