#include "support/least_seconds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "plan/bytes/least_bytes.h"
#include "plan/search/step_memory_model.h"

namespace thimble {
namespace {

constexpr double kEndless = 1e30;

// The least cut between a source and a sink, by Dinic's algorithm.
class Network {
 public:
  explicit Network(size_t nodes) : edges_(nodes) {}

  void add(size_t from, size_t to, double capacity) {
    edges_[from].push_back({to, edges_[to].size(), capacity});
    edges_[to].push_back({from, edges_[from].size() - 1, 0});
  }

  double least_cut(size_t source, size_t sink) {
    double cut = 0;
    while (find_levels(source, sink)) {
      next_.assign(edges_.size(), 0);
      while (const double sent = send(source, sink, kEndless)) cut += sent;
    }
    return cut;
  }

 private:
  struct Edge {
    size_t to = 0, back = 0;
    double left = 0;
  };
  static constexpr double kNothing = 1e-15;

  bool find_levels(size_t source, size_t sink) {
    level_.assign(edges_.size(), -1);
    level_[source] = 0;
    std::queue<size_t> open({source});
    for (; !open.empty(); open.pop()) {
      for (const Edge& edge : edges_[open.front()]) {
        if (edge.left <= kNothing || level_[edge.to] >= 0) continue;
        level_[edge.to] = level_[open.front()] + 1;
        open.push(edge.to);
      }
    }
    return level_[sink] >= 0;
  }

  double send(size_t node, size_t sink, double most) {
    if (node == sink) return most;
    for (size_t& i = next_[node]; i < edges_[node].size(); ++i) {
      Edge& edge = edges_[node][i];
      if (edge.left <= kNothing || level_[edge.to] != level_[node] + 1) continue;
      const double sent = send(edge.to, sink, std::min(most, edge.left));
      if (sent <= 0) continue;
      edge.left -= sent;
      edges_[edge.to][edge.back].left += sent;
      return sent;
    }
    return 0;
  }

  std::vector<std::vector<Edge>> edges_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

// Seconds of recomputation, and of `price` for each kept byte, at least.
double least_cost(const StepMemoryModel& memory, double price) {
  const size_t values = memory.evictables.size(), source = values + memory.forward,
               sink = source + 1;
  Network network(sink + 1);
  for (size_t v = 0; v < values; ++v) {
    const bool read_later =
        !memory.uses[v].empty() && memory.uses[v].back() >= static_cast<int>(memory.forward);
    if (read_later) network.add(source, v, kEndless);
    network.add(v, values + static_cast<size_t>(memory.maker[v]),
                price * static_cast<double>(memory.bytes[v].count));
  }
  for (size_t s = 0; s < memory.forward; ++s) {
    network.add(values + s, sink, memory.calls[s].seconds);
    for (const int input : memory.calls[s].reads) {
      network.add(values + s, static_cast<size_t>(input), kEndless);
    }
  }
  return network.least_cut(source, sink);
}

}  // namespace

std::vector<double> least_seconds(const Graph& graph, const Costs& costs,
                                  const std::vector<Bytes>& budgets) {
  const ForwardPass pass(graph);
  const StepMemoryModel memory(pass, costs);
  const LeastBytes least = least_bytes(graph, costs);
  double all_seconds = 0, forward_seconds = 0, bytes = 0;
  for (const NodeCost& node : costs.nodes) all_seconds += node.seconds;
  for (size_t s = 0; s < memory.forward; ++s) forward_seconds += memory.calls[s].seconds;
  for (const Bytes value : memory.bytes) bytes += static_cast<double>(value.count);

  // For each price the least cost less what the room is worth is a bound: the best of many prices.
  constexpr int kPrices = 240;
  std::vector<double> seconds(budgets.size(), all_seconds);
  for (int i = 0; i < kPrices; ++i) {
    const double price = forward_seconds / bytes * std::pow(10.0, -4 + 6.0 * i / kPrices);
    const double cost = least_cost(memory, price);
    for (size_t b = 0; b < budgets.size(); ++b) {
      const auto room = static_cast<double>((budgets[b] - least.persistent - least.carried).count);
      seconds[b] = std::max(seconds[b], all_seconds + cost - price * std::max(0.0, room));
    }
  }
  return seconds;
}

}  // namespace thimble
