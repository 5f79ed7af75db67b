// Builds an imported net with the public builder, node by node: a rule for every op of the vocabulary,
// by name (lower/). What a rule cannot do it says as a UserError; all of them are told at once.
//
// Activations are kept in the run's storage. With 16 bits, sums and means over axes are in f32, and so is
// the pointwise arithmetic on them until it meets a 16-bit tensor: that one op is computed in f32 and
// rounded once. What only sums read is computed in f32, too. So a norm that is written out has the
// statistics of a fused one, and a square cannot overflow before its mean is taken. A constant beyond
// what 16 bits hold becomes the largest number that they do: a mask of -3.4e38 stays finite.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "import/laid.h"
#include "import/net.h"
#include "model/model.h"

namespace thimble {

class Lowering;

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

  // For devices whose products add biases on their way: linear layers become one node, which rounds once.
  void join_products() { joins_products_ = true; }

  // UserError, naming all that cannot be built.
  Model build();

  // That in steps, for nodes that are made as they are needed: begin(); lower() and `add_input` as
  // often as it takes; finish() with the name of the loss.
  void begin();
  void lower(const NetNode& node);
  void add_input(const NetInput& input, int64_t limit);
  // The same number everywhere, as a value of that name; its shape may depend on the rows.
  void add_filled(const std::string& name, TensorType type, double number) {
    values_[name] = {builder_.constant(number, type), plain_order(type.shape.rank())};
  }
  // Numbers that are known, as a value of that name. REQUIRES: its shape does not depend on the rows.
  void add_constant(const std::string& name, TensorType type, std::vector<double> numbers);
  Model finish(const std::string& loss, std::span<const NetOutput> outputs);
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
    values_[name] = Laid(values_.at(of));
    if (late_.contains(of)) late_.insert(name);
  }

  // For rules.

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
  Laid in(const NetNode& node, size_t i);
  // In the type that activations are kept in; of nodes that compute whole numbers ("whole") in f32, which
  // has them exactly.
  Laid stored_in(const NetNode& node, size_t i);
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
  void set(const NetNode& node, Laid result, size_t k = 0);
  void set_plain(const NetNode& node, ValueId value, size_t k = 0);
  // An activation that the only reader of the node's result applies, and that the caller will apply
  // in its place: its name, one of `known`, or "none".
  std::string fused_activation(const NetNode& node, std::span<const std::string_view> known);
  ValueId rng();
  ValueId weight_of_loss();
  // A result of the whole net, beside the loss.
  void report(Metric metric) { model_.metrics.push_back(std::move(metric)); }
  bool reports() const { return !model_.metrics.empty(); }

 private:
  void make_parameters();
  bool keeps_16_bits() const { return size_of(options_.storage) == 2; }
  bool only_summed(const NetNode& node) const;
  enum class Kind : uint8_t { other, of_constants, of_sum };
  Kind kind_of(ValueId value);

  const Net& net_;
  const ModelOptions& options_;
  Model model_;
  Builder builder_;
  std::unordered_map<std::string, Laid> values_;
  std::unordered_map<std::string, std::vector<size_t>> readers_;  // by value: nodes
  std::unordered_map<std::string, std::string> applied_;  // by result of a fused node: of whose
  std::vector<std::string> faults_;
  std::unordered_set<std::string> broken_;
  // With storage of 16 bits:
  std::set<std::string, std::less<>> late_;   // weights in f32, cast where they are first read
  std::set<std::string, std::less<>> fixed_;  // constants of the file
  std::vector<Kind> kinds_;                   // by value, as far as was asked for
  std::map<std::pair<ValueId, DType>, ValueId> casts_;  // one copy for all readers
  bool joins_products_ = false;
};

// Numbers below which the whole numbers of an input are, by what reads them; 0: not known.
int64_t limit_of(const Net& net, std::string_view input);

// Settings of nodes; UserError where one is missing or of another kind.
int64_t whole_of(const NetNode& node, std::string_view name);
double real_of(const NetNode& node, std::string_view name, double otherwise);
const std::vector<int64_t>& wholes_of(const NetNode& node, std::string_view name, size_t count);
// The largest finite number of 16 bits; of more, no number is beyond.
double largest_of(DType dtype);
// An axis of a shape.
int axis_in(const NetNode& node, std::string_view name, int rank);

}  // namespace thimble
