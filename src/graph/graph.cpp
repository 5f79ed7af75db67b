#include "graph/graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/updates.h"

namespace thimble {

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, kRoles> names = {
      "input",     "weight",    "gradient", "optimizer_state", "activation",
      "statistic", "workspace", "constant", "frozen"};
  return names[static_cast<size_t>(role)];
}

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 3> names = {"begin", "each", "end"};
  return names[static_cast<size_t>(phase)];
}

ValueId Graph::find(std::string_view value_name) const {
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].name == value_name) return make_id<ValueId>(v);
  }
  return {};
}

Signature signature_of(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  Signature signature;
  signature.op = node.op;
  signature.attrs = node.attrs;
  for (const ValueId input : node.inputs) signature.inputs.push_back(graph[input].type);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    signature.outputs.push_back(graph[node.outputs[k]].type);
    if (node.added_into(k).valid()) signature.accumulate |= 1u << k;
  }
  return signature;
}

std::vector<ValueId> previous_versions(const Graph& graph) {
  std::vector<ValueId> previous(graph.values.size());
  for (const Node& node : graph.nodes) {
    for (const Alias& update : updates_of(node)) {
      previous[node.outputs[static_cast<size_t>(update.output)].at()] =
          node.inputs[static_cast<size_t>(update.input)];
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.added_into(k).valid()) previous[node.outputs[k].at()] = node.added_into(k);
    }
  }
  return previous;
}

std::vector<std::vector<NodeId>> readers_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> readers(graph.values.size());
  const auto add = [&](ValueId value, NodeId reader) {
    if (!value.valid()) return;
    auto& list = readers[value.at()];
    if (list.empty() || list.back() != reader) list.push_back(reader);
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId input : graph.nodes[n].inputs) add(input, make_id<NodeId>(n));
    for (const ValueId target : graph.nodes[n].accumulate) add(target, make_id<NodeId>(n));
  }
  return readers;
}

void verify_graph(const Graph& graph) {
  std::vector<int> made_at(graph.values.size(), -1);
  // A view shares the bytes of what it is a view of: overwriting one overwrites both.
  std::vector<ValueId> bytes_of(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) bytes_of[v] = make_id<ValueId>(v);
  std::vector<int> overwritten_at(graph.values.size(), -1);  // by bytes_of
  const auto fail = [&](const Node& node, const std::string& what) {
    internal_check(false, fmt::format("graph '{}', node '{}': {}", graph.name, node.name, what));
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool source = value.role == Role::input || is_persistent(value.role);
    internal_check(value.producer.valid() || source,
                   fmt::format("value '{}' has no producer and is no source", value.name));
  }
  Phase phase = Phase::prologue;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const int now = static_cast<int>(n);
    if (node.op == nullptr) fail(node, "has no op");
    if (node.phase < phase) fail(node, "runs in an earlier phase than a node before it");
    phase = node.phase;
    if (!node.accumulate.empty() && node.accumulate.size() != node.outputs.size()) {
      fail(node, "accumulates into another number of values than it makes");
    }

    const auto check_read = [&](ValueId read) {
      if (!read.valid() || read.at() >= graph.values.size())
        fail(node, "reads a value out of range");
      const Value& value = graph[read];
      if (value.producer.valid() && made_at[read.at()] < 0) {
        fail(node, fmt::format("reads '{}' before it is made", value.name));
      }
      const int overwriter = overwritten_at[bytes_of[read.at()].at()];
      if (overwriter >= 0) {
        fail(node, fmt::format("reads '{}' after '{}' overwrote it", value.name,
                               graph.nodes[static_cast<size_t>(overwriter)].name));
      }
    };
    std::vector<TensorType> types;
    for (const ValueId input : node.inputs) {
      check_read(input);
      types.push_back(graph[input].type);
    }
    const std::vector<TensorType> expected = node.op->infer(types, node.attrs);
    if (expected.size() != node.outputs.size())
      fail(node, "has another number of outputs than its op");

    const auto overwrite = [&](ValueId value) {
      if (graph[value].role == Role::frozen) fail(node, "overwrites a frozen weight");
      int& overwriter = overwritten_at[bytes_of[value.at()].at()];
      if (overwriter >= 0) fail(node, "overwrites a value twice");
      overwriter = now;
    };
    for (const Alias& update : updates_of(node)) {
      overwrite(node.inputs[static_cast<size_t>(update.input)]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId output = node.outputs[k];
      if (!output.valid() || output.at() >= graph.values.size())
        fail(node, "makes a value out of range");
      const Value& value = graph[output];
      if (value.producer != make_id<NodeId>(n) || made_at[output.at()] >= 0) {
        fail(node, fmt::format("is not the one producer of '{}'", value.name));
      }
      if (value.type != expected[k]) {
        fail(node, fmt::format("makes {} where its op makes {}", to_string(value.type),
                               to_string(expected[k])));
      }
      made_at[output.at()] = now;
      if (node.op->view && k == 0) bytes_of[output.at()] = bytes_of[node.inputs[0].at()];
      const ValueId target = node.added_into(k);
      if (!target.valid()) continue;
      check_read(target);
      overwrite(target);
      if (graph[target].type != value.type) fail(node, "adds into a value of another type");
      if (((node.op->accumulates >> k) & 1u) == 0) fail(node, "cannot add into its output");
      if (std::count(node.inputs.begin(), node.inputs.end(), target) != 0) {
        fail(node, "reads a value that it adds into");
      }
    }
  }
}

std::string print_graph(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name);
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::vector<std::string_view> result;
    for (const ValueId id : ids) result.push_back(graph[id].name);
    return fmt::format("{}", fmt::join(result, ", "));
  };
  for (const Value& value : graph.values) {
    if (value.producer.valid()) continue;
    text += fmt::format("  {} {} : {}\n", name_of(value.role), value.name, to_string(value.type));
  }
  for (const Node& node : graph.nodes) {
    std::vector<std::string> made;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId target = node.added_into(k);
      made.push_back(fmt::format("{}{}", to_string(graph[node.outputs[k]].type),
                                 target.valid() ? fmt::format(" += {}", graph[target].name) : ""));
    }
    text += fmt::format(
        "  {} = {}({}){} -> {}{}\n", node.name, node.op->name, names(node.inputs),
        to_string(node.attrs), fmt::join(made, ", "),
        node.phase == Phase::per_microbatch ? "" : fmt::format(" @{}", name_of(node.phase)));
  }
  text += fmt::format("  results {}\n", names(graph.results));
  return text;
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values) {
    if (value.role != Role::weight || value.producer.valid()) continue;
    count += value.is_shard() ? value.unsharded.elements() : value.type.elements();
  }
  return count;
}

}  // namespace thimble
