// Builds an imported net with the public builder, node by node: a rule for every op of the
// vocabulary, by name (lower/). A rule reports a case that it cannot lower as a UserError. All of
// these are printed together.
//
// Activations are kept in the run's storage. With 16 bits, sums and means over axes are in f32, and
// so is the pointwise arithmetic on them until it meets a 16-bit tensor: that one op is computed in
// f32 and rounded once. Tensors that only sums read are computed in f32, too. So a norm that is
// written out has the statistics of a fused one, and a square cannot overflow before its mean is
// taken. A constant beyond what 16 bits hold becomes the largest number that they do: a mask of
// -3.4e38 stays finite.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "import/net.h"
#include "import/permuted_tensor.h"
#include "model/model.h"

namespace thimble {

class Lowering;
struct LossParts;

// The whole numbers that an input may hold: below `limit`, 0 where that is not known; or
// `ignored`, a label that does not count. A loss that is the mean of those that do needs one.
struct WholeNumbers {
  int64_t limit = 0;
  std::optional<int64_t> ignored = {};
  bool one_counts = false;
};

struct LoweringRule {
  std::string_view op;
  void (*lower)(Lowering& l, const NetNode& node);
};

// The vocabulary, by what the ops do.
std::span<const LoweringRule> pointwise_rules();
std::span<const LoweringRule> shape_rules();
std::span<const LoweringRule> reduce_rules();
std::span<const LoweringRule> layer_rules();
std::span<const LoweringRule> image_rules();
std::span<const LoweringRule> sequence_rules();
std::span<const LoweringRule> loss_rules();

class Lowering {
 public:
  // REQUIRES: both outlive it.
  Lowering(const Net& net, const ModelOptions& options);

  // For devices whose products add biases on their way: linear layers become one node, which rounds
  // once.
  void join_products() { joins_products_ = true; }

  // UserError, naming all that cannot be built. A model whose batch is a part of a step's
  // (ModelOptions::step_batch) needs `parts`, what its loss is made of; others do without.
  Model build(const LossParts* parts = nullptr);

  // The same in steps, for nodes that are made as they are needed: begin(), then any number of
  // lower() and add_input(), then finish() with the name of the loss.
  void begin();
  void lower(const NetNode& node);
  void lower_all();  // begin(), every node of the net, and a look at faults
  void add_input(const NetInput& input, WholeNumbers numbers);
  // The same number everywhere, as a value of that name; its shape may depend on the rows.
  void add_filled(const std::string& name, TensorType type, double number) {
    values_[name] = {builder_.constant(number, type), plain_order(type.shape.rank())};
  }
  // Numbers that are known, as a value of that name. REQUIRES: its shape does not depend on the
  // rows.
  void add_constant(const std::string& name, TensorType type, std::vector<double> numbers);
  Model finish(const std::string& loss, std::span<const NetOutput> outputs,
               const LossParts* parts = nullptr);
  void add_fault(std::string fault) { faults_.push_back(std::move(fault)); }
  // UserError naming all faults so far, if there are any.
  void check_faults() const;
  // Stands for a value that could not be built, or was made of one: only the first fault is told.
  bool is_broken(const std::string& name) const { return broken_.contains(name); }
  void mark_broken(const std::string& name) {
    if (!name.empty()) broken_.insert(name);
  }
  bool knows(const std::string& name) const { return values_.contains(name); }
  // As the net sees it. REQUIRES: knows(name).
  TensorType type_of(const std::string& name) const;
  void alias(const std::string& name, const std::string& of) {
    user_check(knows(of), "it reads '{}', which is not there", of);
    values_[name] = PermutedTensor(values_.at(of));
    if (late_.contains(of)) late_.insert(name);
  }

  // For whoever asks what a loss is made of (import/loss_parts.h), once all nodes are there.

  // The maker of a value of the net.
  struct Made {
    std::string op;
    std::vector<Operand> in;
  };
  // A loss that is a sum over rows, divided by how many of the labels count.
  struct Mean {
    std::string sum, weight;
    bool of_fed_labels = false;  // they come from the data, nothing computed
  };
  const Made* maker_of(const std::string& name) const;
  const Mean* mean_of(const std::string& name) const;
  ValueId value_of(const std::string& name) const { return values_.at(name).value; }
  const Graph& graph() const { return model_.graph; }
  // Inputs that rows of the data fill.
  std::vector<ValueId> fed() const;
  // "op (where it stands in the source)", of a node of the graph.
  std::string origin_of(NodeId node) const;

  // For rules.

  void note_mean(const NetNode& node, Mean mean) { means_[node.out[0]] = std::move(mean); }
  // Whether a value is an input, its numbers moved around at most.
  bool is_fed(const std::string& name) const;
  Builder& b() { return builder_; }
  const ModelOptions& options() const { return options_; }
  int64_t rows() const { return options_.batch; }
  bool training() const { return options_.training; }
  bool joins_products() const { return joins_products_; }

  bool has(const NetNode& node, size_t i) const { return i < node.in.size() && !node.in[i].none(); }
  bool is_number(const NetNode& node, size_t i) const {
    return i < node.in.size() && node.in[i].number.has_value();
  }
  double number(const NetNode& node, size_t i) const { return *node.in[i].number; }
  // Input i, which must be there.
  PermutedTensor in(const NetNode& node, size_t i);
  // In the type that activations are kept in; of nodes that compute whole numbers ("whole") in f32,
  // which has them exactly.
  PermutedTensor stored_in(const NetNode& node, size_t i);
  ValueId stored(ValueId value) { return in_dtype(value, options_.storage); }
  ValueId in_dtype(ValueId value, DType dtype);
  // Of pointwise nodes and of sums: the dtype that the operands meet in, and that of the result.
  struct Dtypes {
    DType computed, kept;
  };
  Dtypes dtypes_of(const NetNode& node);
  // Whether a value of a 16-bit net is in f32 because it was made of a sum.
  bool is_of_sum(ValueId value) { return keeps_16_bits() && kind_of(value) == Kind::of_sum; }
  // In the net's order of axes.
  ValueId plain_in(const NetNode& node, size_t i) { return plain(builder_, in(node, i)); }
  // Whole numbers in i32, in the net's order; those that were computed are in a floating type.
  ValueId numbers_in(const NetNode& node, size_t i);
  // A norm's scale or shift in f32 [channels]; where there is none, that number for each.
  ValueId scale_in(const NetNode& node, size_t i, double otherwise, int64_t channels);
  // The shape that the file states of output k.
  Shape stated(const NetNode& node, size_t k = 0) const;
  void set(const NetNode& node, PermutedTensor result, size_t k = 0);
  void set_plain(const NetNode& node, ValueId value, size_t k = 0);
  // A value that the net has no name for.
  void set_value(const std::string& name, ValueId value) {
    values_[name] = {value, plain_order(builder_.shape(value).rank())};
  }
  // An activation that the only reader of the node's result applies, and that the caller will apply
  // in its place: its name, one of `known`, or "none".
  std::string fused_activation(const NetNode& node, std::span<const std::string_view> known);
  ValueId rng();
  ValueId loss_normalizer();
  // f32 [1]: the share of the step's rows that are at hand.
  ValueId share_of_rows();
  // A result of the whole net, beside the loss.
  void report(Metric metric) { model_.metrics.push_back(std::move(metric)); }
  bool reports() const { return !model_.metrics.empty(); }

 private:
  void make_parameters();
  ValueId loss_of_parts(const LossParts& parts);
  bool keeps_16_bits() const { return size_of(options_.storage) == 2; }
  bool only_summed(const NetNode& node) const;
  enum class Kind : uint8_t { other, of_constants, of_sum };
  Kind kind_of(ValueId value);

  const Net& net_;
  const ModelOptions& options_;
  Model model_;
  Builder builder_;
  std::unordered_map<std::string, PermutedTensor> values_;
  std::unordered_map<std::string, std::vector<size_t>> readers_;  // by value: nodes
  std::unordered_map<std::string, std::string> applied_;  // by result of a fused node: of whose
  std::unordered_map<std::string, Made> made_;
  std::unordered_map<std::string, Mean> means_;
  std::vector<std::pair<size_t, std::string>> origins_;  // by the first node of the graph, in order
  std::vector<std::string> faults_;
  std::unordered_set<std::string> broken_;
  // With storage of 16 bits:
  std::set<std::string, std::less<>> late_;   // weights in f32, cast where they are first read
  std::set<std::string, std::less<>> fixed_;  // constants of the file
  std::vector<Kind> kinds_;                   // by value, as far as was asked for
  std::map<std::pair<ValueId, DType>, ValueId> casts_;  // one copy for all readers
  bool joins_products_ = false;
};

// By what reads an input.
WholeNumbers numbers_of(const Net& net, std::string_view input);

// The label that a cross-entropy does not count.
int64_t ignored_label(const NetNode& cross_entropy);

// Settings of nodes; UserError where one is missing or of another kind.
int64_t whole_of(const NetNode& node, std::string_view name);
double real_of(const NetNode& node, std::string_view name, double otherwise);
const std::vector<int64_t>& wholes_of(const NetNode& node, std::string_view name, size_t count);
// The largest finite number of 16 bits; of more, no number is beyond.
double largest_of(DType dtype);
// An axis of a shape.
int axis_in(const NetNode& node, std::string_view name, int rank);

}  // namespace thimble
