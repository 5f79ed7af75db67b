// The computation of one training step (or of a forward pass): values and the nodes that make them.
// Single assignment: a value is made by at most one node; "the weight after its update" is another
// value than "the weight before", at the same bytes (OpDef::updates, Node::accumulate).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/ids.h"
#include "graph/op.h"

namespace thimble {

enum class Role : uint8_t {
  input,            // filled by the caller before each step: data, labels, learning rate
  weight,           // persistent, trained
  gradient,         // of weights
  optimizer_state,  // persistent, owned by updates
  activation,       // everything between: results and their gradients
  statistic,        // persistent, written by side-effect nodes (running mean and variance)
  workspace,        // scratch of one kernel call
  constant,         // persistent, never written
  frozen,  // persistent, of the model, never trained: no gradient, no state, no master copy
};
inline constexpr int kRoles = 9;

std::string_view name_of(Role role);
// Lives across steps in the arena when no node makes it.
constexpr bool is_persistent(Role role) {
  return role == Role::weight || role == Role::optimizer_state || role == Role::statistic ||
         role == Role::constant || role == Role::frozen;
}

// A step runs its `prologue` nodes once, its `per_microbatch` nodes once per microbatch, its
// `epilogue` nodes once.
enum class Phase : uint8_t { prologue, per_microbatch, epilogue };
std::string_view name_of(Phase phase);

// A user's word to every planner on a node's results.
enum class Mark : uint8_t { automatic, keep, recompute };

// How a persistent value starts.
struct Init {
  // mask: a bitmap (base/number/bits.h) with ones at random places.
  enum class Kind : uint8_t { zeros, constant, normal, uniform, mask } kind = Kind::zeros;
  // constant: the value; normal: the deviation; uniform: in [-scale, scale); mask: how many ones
  double scale = 0;
  bool operator==(const Init&) const = default;
};

struct Value {
  std::string name;
  TensorType type;
  Role role = Role::activation;
  NodeId producer = {};  // invalid: present when the step begins
  Init init = {};        // meaningful without a producer
  // Of a part that each rank has its own of: the shape of all parts together, rank after rank, the
  // last one cut off at its end. No axes: it is whole.
  Shape unsharded = {};

  bool is_shard() const { return unsharded.rank() > 0; }
};

struct Node {
  std::string name;
  const OpDef* op = nullptr;
  Attrs attrs = {};
  std::vector<ValueId> inputs = {};
  std::vector<ValueId> outputs = {};
  // Empty, or one per output: the value that output k is added into (invalid: output k is
  // written). The sum takes over the bytes of what it is added into.
  std::vector<ValueId> accumulate = {};
  Phase phase = Phase::per_microbatch;
  bool backward = false;  // made by autodiff or an optimizer; planners recompute forward nodes only
  NodeId differentiates = {};  // of a gradient node: the forward node it belongs to
  Mark mark = Mark::automatic;

  ValueId added_into(size_t output) const {
    return output < accumulate.size() ? accumulate[output] : ValueId{};
  }
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;       // in a valid order of execution
  std::vector<ValueId> results;  // what the caller reads after the step: loss, correct count

  const Value& operator[](ValueId id) const { return values[id.at()]; }
  Value& operator[](ValueId id) { return values[id.at()]; }
  const Node& operator[](NodeId id) const { return nodes[id.at()]; }
  Node& operator[](NodeId id) { return nodes[id.at()]; }

  // Invalid id when there is no value of that name.
  ValueId find(std::string_view value_name) const;
};

Signature signature_of(const Graph& graph, NodeId node);

// For each value, the value it is the next version of (same bytes), or invalid: the outputs of
// updates and accumulations. Views are not versions.
std::vector<ValueId> previous_versions(const Graph& graph);
// For each value, the nodes that read it, as input or as accumulation target, in node order.
std::vector<std::vector<NodeId>> readers_of(const Graph& graph);

// Throws InternalError unless the graph is well formed: indices in range, single assignment,
// producers before readers, types as inferred, phases in order. No value gets a next version twice.
// No reader of a value follows the node that overwrites it.
void verify_graph(const Graph& graph);

// One line per node: "conv1 = conv2d(x, w){pad=1} -> f32[...]". For people and for tests.
std::string print_graph(const Graph& graph);

// Total parameters: elements of weights without a producer.
int64_t parameter_count(const Graph& graph);

}  // namespace thimble
