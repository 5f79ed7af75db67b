#include "plan/search/recompute_groups.h"

#include <algorithm>

#include "base/error.h"
#include "plan/schedule/chain.h"

namespace thimble {
namespace {

struct Group {
  std::vector<ValueId> values;
  Bytes bytes;
  double seconds_per_byte = 0;
};

}  // namespace

std::vector<std::vector<ValueId>> groups_by_recompute_time(const Graph& graph, const Costs& costs,
                                                           std::span<const ValueId> values) {
  const ForwardPass pass(graph);
  const std::vector<Block> blocks = cut_into_blocks(pass, costs);
  const auto position = [&](ValueId value) { return std::max(0, pass.made_at(value)); };
  std::vector<ValueId> in_order(values.begin(), values.end());
  std::stable_sort(in_order.begin(), in_order.end(),
                   [&](ValueId a, ValueId b) { return position(a) < position(b); });
  Bytes total;
  for (const ValueId value : values) total += graph[value].type.bytes();

  std::vector<Group> groups;
  auto next = in_order.begin();
  for (const Block& block : blocks) {
    const size_t first = groups.size();
    Bytes in_block;
    for (; next != in_order.end() && position(*next) < block.end; ++next) {
      const Bytes bytes = graph[*next].type.bytes();
      const bool full =
          groups.size() == first || (groups.back().bytes + bytes).count > total.count / 8;
      if (full) groups.emplace_back();
      groups.back().values.push_back(*next);
      groups.back().bytes += bytes;
      in_block += bytes;
    }
    for (size_t g = first; g < groups.size(); ++g) {
      groups[g].seconds_per_byte = block.seconds / static_cast<double>(in_block.count);
    }
  }
  internal_check(next == in_order.end(),
                 "values are made after the last block of the forward pass");
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.seconds_per_byte > b.seconds_per_byte;
  });
  std::vector<std::vector<ValueId>> result;
  for (Group& group : groups) result.push_back(std::move(group.values));
  return result;
}

}  // namespace thimble
