#include "transform/peak_reducing_order.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "graph/updates.h"

namespace thimble {
namespace {

class Greedy {
 public:
  explicit Greedy(const Graph& graph)
      : graph_(graph),
        bytes_of_(graph.values.size()),
        readers_left_(graph.values.size(), 0),
        waits_for_(graph.nodes.size(), 0),
        unlocks_(graph.nodes.size()) {
    find_bytes();
    find_links();
  }

  std::vector<NodeId> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (waits_for_[n] == 0) ready_.insert(key(n));
    }
    std::vector<NodeId> order;
    while (!ready_.empty()) {
      const auto best = choose();
      const size_t n = std::get<2>(*best);
      ready_.erase(best);
      order.push_back(make_id<NodeId>(n));
      for (const ValueId input : reads(n)) --readers_left_[bytes_of_[input.at()].at()];
      for (const size_t next : unlocks_[n]) {
        if (--waits_for_[next] == 0) ready_.insert(key(next));
      }
    }
    return order;
  }

 private:
  using Key = std::tuple<Phase, bool, size_t>;  // phase, backward, node

  Key key(size_t n) const { return {graph_.nodes[n].phase, graph_.nodes[n].backward, n}; }

  // Of the first ready nodes of the pass that is going on, the one that adds least.
  std::set<Key>::iterator choose() {
    constexpr int kLookAhead = 32;
    auto best = ready_.begin();
    int64_t least = INT64_MAX;
    int seen = 0;
    for (auto it = ready_.begin(); it != ready_.end() && seen < kLookAhead; ++it, ++seen) {
      if (std::get<0>(*it) != std::get<0>(*ready_.begin()) ||
          std::get<1>(*it) != std::get<1>(*ready_.begin())) {
        break;
      }
      const int64_t adds = added_bytes(std::get<2>(*it));
      if (adds < least) best = it, least = adds;
    }
    return best;
  }

  int64_t added_bytes(size_t n) const {
    int64_t bytes = 0;
    for (const ValueId output : graph_.nodes[n].outputs) {
      if (bytes_of_[output.at()] == output) bytes += graph_[output].type.bytes().count;
    }
    for (const ValueId input : reads(n)) {
      const ValueId root = bytes_of_[input.at()];
      if (dies_[root.at()] && readers_left_[root.at()] == 1)
        bytes -= graph_[root].type.bytes().count;
    }
    return bytes;
  }

  // Values a node reads, each root once.
  std::vector<ValueId> reads(size_t n) const {
    std::vector<ValueId> values;
    const auto add = [&](ValueId value) {
      if (!value.valid()) return;
      const ValueId root = bytes_of_[value.at()];
      if (std::find(values.begin(), values.end(), root) == values.end()) values.push_back(root);
    };
    for (const ValueId input : graph_.nodes[n].inputs) add(input);
    for (const ValueId target : graph_.nodes[n].accumulate) add(target);
    return values;
  }

  // By value, the value at whose bytes it lies, and whether those end with their last reader.
  void find_bytes() {
    for (size_t v = 0; v < bytes_of_.size(); ++v) bytes_of_[v] = make_id<ValueId>(v);
    for (const Node& node : graph_.nodes) {
      if (node.op->view) bytes_of_[node.outputs[0].at()] = bytes_of_[node.inputs[0].at()];
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (node.added_into(k).valid()) {
          bytes_of_[node.outputs[k].at()] = bytes_of_[node.added_into(k).at()];
        }
      }
      for (const Alias& update : updates_of(node)) {
        bytes_of_[node.outputs[static_cast<size_t>(update.output)].at()] =
            bytes_of_[node.inputs[static_cast<size_t>(update.input)].at()];
      }
    }
    dies_.assign(graph_.values.size(), false);
    for (size_t v = 0; v < dies_.size(); ++v) {
      dies_[v] = graph_.values[v].producer.valid();  // inputs and persistent values stay
    }
    for (const ValueId result : graph_.results) dies_[bytes_of_[result.at()].at()] = false;
  }

  // A node waits for what makes its inputs, and one that overwrites bytes for all earlier readers of
  // them.
  void find_links() {
    std::vector<std::vector<size_t>> readers(
        graph_.values.size());  // by root, of its latest version
    const auto link = [&](size_t first, size_t second) {
      if (first == second) return;
      unlocks_[first].push_back(second);
      ++waits_for_[second];
    };
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (const ValueId input : node.inputs) {
        if (graph_[input].producer.valid()) link(graph_[input].producer.at(), n);
      }
      std::vector<ValueId> overwritten;
      for (const ValueId target : node.accumulate) {
        if (!target.valid()) continue;
        if (graph_[target].producer.valid()) link(graph_[target].producer.at(), n);
        overwritten.push_back(bytes_of_[target.at()]);
      }
      for (const Alias& update : updates_of(node)) {
        overwritten.push_back(bytes_of_[node.inputs[static_cast<size_t>(update.input)].at()]);
      }
      for (const ValueId root : reads(n)) ++readers_left_[root.at()];
      for (const ValueId root : overwritten) {
        for (const size_t reader : readers[root.at()]) link(reader, n);
        readers[root.at()].clear();
      }
      for (const ValueId root : reads(n)) readers[root.at()].push_back(n);
    }
  }

  const Graph& graph_;
  std::vector<ValueId> bytes_of_;             // by value
  std::vector<bool> dies_;                    // by root
  std::vector<int> readers_left_;             // by root
  std::vector<int> waits_for_;                // by node: links that are not done
  std::vector<std::vector<size_t>> unlocks_;  // by node
  std::set<Key> ready_;
};

}  // namespace

std::vector<NodeId> peak_reducing_order(const Graph& graph) { return Greedy(graph).run(); }

}  // namespace thimble
