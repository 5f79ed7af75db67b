#include "import/lowering.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "import/loss_parts.h"

namespace thimble {
namespace {

constexpr size_t kMostFaults = 40;

const LoweringRule* find_rule(std::string_view op) {
  for (const auto rules : {pointwise_rules(), shape_rules(), reduce_rules(), layer_rules(),
                           image_rules(), sequence_rules(), loss_rules()}) {
    for (const LoweringRule& rule : rules) {
      if (rule.op == op) return &rule;
    }
  }
  return nullptr;
}

// Ops whose operand `operand` is a convolution's weight, [O,I,...] in the net and [O,...,I] here.
bool reads_filter(const NetNode& node, const std::string& name) {
  return (node.op == "conv" || node.op == "conv_transpose") && node.in.size() > 1 &&
         node.in[1].value == name;
}

// Scales and shifts of norms stay in f32 whatever the rest is kept in.
bool reads_scale(const NetNode& node, const std::string& name) {
  constexpr std::array<std::string_view, 4> kNorms = {"batch_norm", "layer_norm", "rms_norm",
                                                      "group_norm"};
  if (std::ranges::find(kNorms, node.op) == kNorms.end()) return false;
  return std::ranges::any_of(node.in.begin() + std::min<ptrdiff_t>(1, std::ssize(node.in)),
                             node.in.end(),
                             [&](const Operand& operand) { return operand.value == name; });
}

// Ops that move the numbers of their first operand, and leave them as they are.
bool only_moves(std::string_view op) {
  constexpr std::array<std::string_view, 5> kMoves = {"reshape", "slice", "permute", "pad",
                                                      "expand"};
  return std::ranges::find(kMoves, op) != kMoves.end();
}

}  // namespace

int64_t ignored_label(const NetNode& cross_entropy) {
  constexpr int64_t kUsual = -100;  // PyTorch's
  return cross_entropy.attrs.has("ignore") ? whole_of(cross_entropy, "ignore") : kUsual;
}

int64_t whole_of(const NetNode& node, std::string_view name) {
  for (const auto& [key, value] : node.attrs.entries()) {
    if (key == name && std::holds_alternative<int64_t>(value)) return std::get<int64_t>(value);
  }
  user_error("it has no whole number '{}'", name);
}

double real_of(const NetNode& node, std::string_view name, double otherwise) {
  for (const auto& [key, value] : node.attrs.entries()) {
    if (key != name) continue;
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    user_error("its '{}' is no number", name);
  }
  return otherwise;
}

const std::vector<int64_t>& wholes_of(const NetNode& node, std::string_view name, size_t count) {
  for (const auto& [key, value] : node.attrs.entries()) {
    const auto* list = std::get_if<std::vector<int64_t>>(&value);
    if (key == name && list != nullptr && (count == 0 || list->size() == count)) return *list;
  }
  if (count == 0) user_error("it has no list '{}' of whole numbers", name);
  user_error("it has no list '{}' of {} whole numbers", name, count);
}

int axis_in(const NetNode& node, std::string_view name, int rank) {
  const int64_t axis = whole_of(node, name);
  user_check(axis >= 0 && axis < rank, "a tensor of {} axes has no axis {}", rank, axis);
  return static_cast<int>(axis);
}

// Bounds that a table or a loss puts on the numbers it looks up, through nodes that only move them.
WholeNumbers numbers_of(const Net& net, std::string_view input) {
  std::vector<std::string_view> same = {input};
  const auto moved = [&](const std::string& name) {
    return std::ranges::find(same, std::string_view(name)) != same.end();
  };
  const auto extent = [&](const std::string& name, int axis) -> int64_t {
    for (const NetParameter& p : net.parameters) {
      if (p.name == name && p.shape.rank() > axis) return p.shape[axis];
    }
    for (const NetNode& node : net.nodes) {
      for (size_t k = 0; k < node.out.size(); ++k) {
        const Extents& shape = node.shapes[k];
        if (node.out[k] != name || static_cast<int>(shape.size()) <= axis) continue;
        const Extent& one = shape[static_cast<size_t>(axis)];
        return one.of_rows ? 0 : one.count;
      }
    }
    return 0;
  };
  WholeNumbers numbers;
  bool looked_up = false;  // other than as a label
  for (const NetNode& node : net.nodes) {
    if (node.in.empty()) continue;
    if (only_moves(node.op) && moved(node.in[0].value)) same.push_back(node.out[0]);
    if (node.in.size() < 2 || !moved(node.in[1].value)) continue;
    const int last = node.shapes.empty() ? 0 : static_cast<int>(node.shapes[0].size()) - 1;
    const int64_t own = node.op == "embedding"       ? extent(node.in[0].value, 0)
                        : node.op == "cross_entropy" ? extent(node.in[0].value, 1)
                        : node.op == "take_along"    ? extent(node.in[0].value, last)
                        : node.op == "add_rows"      ? extent(node.out[0], 0)
                        : node.op == "add_along"     ? extent(node.out[0], last)
                        : node.op == "put_along"     ? extent(node.out[0], last)
                                                     : 0;
    if (own > 0) numbers.limit = numbers.limit == 0 ? own : std::min(numbers.limit, own);
    if (node.op == "cross_entropy") {
      numbers.ignored = ignored_label(node);
      numbers.one_counts = node.attrs.text("reduction", "mean") == "mean";
    } else {
      looked_up = looked_up || own > 0;
    }
  }
  if (looked_up) numbers.ignored.reset();
  numbers.one_counts = numbers.one_counts && numbers.ignored;
  return numbers;
}

Lowering::Lowering(const Net& net, const ModelOptions& options)
    : net_(net), options_(options), builder_(model_.graph) {
  for (size_t n = 0; n < net.nodes.size(); ++n) {
    for (const Operand& operand : net.nodes[n].in) {
      if (!operand.value.empty()) readers_[operand.value].push_back(n);
    }
  }
  for (const NetOutput& output : net.outputs) readers_[output.value].push_back(net.nodes.size());
  readers_[net.loss].push_back(net.nodes.size());
}

Model Lowering::build(const LossParts* parts) {
  lower_all();
  return finish(net_.loss, net_.outputs, parts);
}

void Lowering::lower_all() {
  begin();
  for (const NetNode& node : net_.nodes) lower(node);
  check_faults();
}

void Lowering::begin() {
  for (const NetInput& input : net_.inputs) {
    add_input(input, input.dtype == DType::i32 ? numbers_of(net_, input.name) : WholeNumbers{});
  }
  make_parameters();
}

void Lowering::check_faults() const {
  if (faults_.empty()) return;
  const size_t told = std::min(faults_.size(), kMostFaults), more = faults_.size() - told;
  user_error("'{}' has what cannot be trained here:\n  {}{}", options_.name,
             fmt::join(std::span(faults_).first(told), "\n  "),
             more > 0 ? fmt::format("\n  and {} more", more) : "");
}

Model Lowering::finish(const std::string& loss_name, std::span<const NetOutput> outputs,
                       const LossParts* parts) {
  check_faults();
  user_check(knows(loss_name), "'{}': its loss '{}' is not there", options_.name, loss_name);
  PermutedTensor loss = values_.at(loss_name);
  if (is_floating(builder_.type(loss.value).dtype)) loss.value = in_dtype(loss.value, DType::f32);
  user_check(
      builder_.type(loss.value).elements() == 1 && builder_.type(loss.value).dtype == DType::f32,
      "'{}': the loss is {}, not one number", options_.name, to_string(builder_.type(loss.value)));
  if (options_.is_part()) {
    internal_check(parts != nullptr, "a part of a batch without what its loss is made of");
    model_.loss = loss_of_parts(*parts);
  } else {  // the net's own is of the rows at hand, which are all there are: a factor of 1
    const ValueId share = share_of_rows();
    model_.loss = builder_.op("mul", {reshaped(builder_, loss.value, {1}), share});
  }
  model_.graph.results = {model_.loss};
  for (const Metric& metric : model_.metrics) {
    for (const ValueId result : {metric.sum, metric.count}) {
      if (result.valid()) model_.graph.results.push_back(result);
    }
  }
  for (const NetOutput& output : outputs) {
    const PermutedTensor& made = values_.at(output.value);  // tests and callers see the net's order
    model_.outputs.push_back({output.name, options_.training ? made.value : plain(builder_, made)});
  }
  model_.whole_batches = true;
  return std::move(model_);
}

// Of a part of a step. Weighted sums are divided by a guess at their weight, and by the weight
// itself at the end.
ValueId Lowering::loss_of_parts(const LossParts& parts) {
  user_check(
      parts.refused.empty(),
      "'{}' has to be trained in whole batches: {}; leave --microbatch out, and train on one "
      "rank",
      options_.name, parts.refused);
  const bool late = parts.weight && !options_.counts_beforehand;
  user_check(late || !parts.weight || !parts.terms_when_all_count.empty(),
             "the loss of '{}' has a weight that is known behind the last microbatch, too late for "
             "gradients that are folded into the momentum; leave --fold out, or --microbatch",
             options_.name);
  const auto scalar = [&](const std::string& name) {
    return reshaped(builder_, in_dtype(values_.at(name).value, DType::f32), {1});
  };
  const auto times = [&](ValueId value, double factor) {
    return factor == 1 ? value : builder_.op("scale", {value}, {{"factor", factor}});
  };
  const bool early = parts.weight && !late;
  const std::vector<LossTerm>& terms = early ? parts.terms_when_all_count : parts.terms;
  double guess = 1;
  for (const LossTerm& term : terms) {
    if (!late || term.mean) continue;
    guess = 1 / (static_cast<double>(options_.step_batch) * std::max(1.0, term.entries));
  }
  ValueId loss;
  for (const LossTerm& term : terms) {
    ValueId value =
        term.value.empty() ? builder_.constant(1, {{1}, DType::f32}) : scalar(term.value);
    for (const LossTerm::Factor& factor : term.factors) {
      value = builder_.op(factor.divides ? "div" : "mul", {value, scalar(factor.value)});
    }
    value = times(value, term.coefficient * guess);
    if (term.mean) value = builder_.op("mul", {value, share_of_rows()});
    loss = loss.valid() ? builder_.op("add", {loss, value}) : value;
  }
  loss_normalizer();
  for (Feed& feed : model_.feeds) feed.must_count = early || parts.labels_all_count;
  if (!late) return loss;
  LossFactor factor = {.weight = values_.at(parts.weight->value).value,
                       .divides = parts.weight->divides,
                       .guess = guess};
  for (const auto& [name, mean] : parts.weight->sums) {
    const ValueId sum = values_.at(name).value, own = in_dtype(sum, DType::f32);
    factor.arguments.push_back(sum);
    factor.sums.push_back(mean ? builder_.op("mul", {own, share_of_rows()})
                               : builder_.op("copy", {own}));
  }
  model_.late_factor = std::move(factor);
  return loss;
}

void Lowering::add_input(const NetInput& input, WholeNumbers numbers) {
  const Shape shape = shape_for(input.shape, rows());
  const ValueId value = builder_.input(input.name, {shape, input.dtype});
  const auto rows_at = std::ranges::find_if(input.shape, &Extent::of_rows);
  model_.feeds.push_back({.value = value,
                          .field = input.name,
                          .row_axis = static_cast<int>(rows_at - input.shape.begin()),
                          .limit = numbers.limit,
                          .ignored = numbers.ignored,
                          .one_counts = numbers.one_counts});
  values_[input.name] = {value, plain_order(shape.rank())};
}

void Lowering::add_constant(const std::string& name, TensorType type, std::vector<double> numbers) {
  values_[name] = {builder_.statistic(name, type), plain_order(type.shape.rank())};
  model_.foreign->tensors.push_back({.own = name, .theirs = name, .constant = true});
  model_.first_numbers[name] = std::move(numbers);
  fixed_.insert(name);
}

TensorType Lowering::type_of(const std::string& name) const {
  const PermutedTensor& x = values_.at(name);
  return {shape_of(builder_, x), builder_.type(x.value).dtype};
}

void Lowering::make_parameters() {
  ForeignNames names = {.program = "pytorch", .prefix = "", .tensors = {}};
  const auto note = [&](const std::string& name, const Order& order,
                        const std::vector<std::string>& also = {}, bool constant = false) {
    ForeignTensor tensor = {.own = name, .theirs = name, .also = also, .constant = constant};
    if (!is_plain(order)) tensor.axes.assign(order.begin(), order.end());
    names.tensors.push_back(std::move(tensor));
  };
  for (const NetParameter& parameter : net_.parameters) {
    Order order = plain_order(parameter.shape.rank());
    const auto& nodes = readers_[parameter.name];
    const auto any = [&](auto reads) {
      return std::ranges::any_of(nodes, [&](size_t n) {
        return n < net_.nodes.size() && reads(net_.nodes[n], parameter.name);
      });
    };
    if (order.size() >= 3 && any(reads_filter))
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    std::vector<int64_t> dims;
    for (const int axis : order) dims.push_back(parameter.shape[axis]);
    const bool scale = any(reads_scale);
    const bool master = options_.master && parameter.trained;
    const DType dtype = scale || master ? DType::f32 : options_.storage;
    const TensorType type = {Shape(std::span<const int64_t>(dims)), dtype};
    const ValueId value = parameter.trained ? builder_.weight(parameter.name, type, {})
                                            : builder_.frozen(parameter.name, type);
    if (parameter.trained && !net_.groups.empty()) {
      const NetGroup& group = net_.groups[parameter.group];
      model_.weight_settings[parameter.name] = {group.rate, group.decay};
    }
    if (!scale && type.dtype != options_.storage) late_.insert(parameter.name);
    values_[parameter.name] = {value, order};
    note(parameter.name, order, parameter.also);
  }
  for (const NetTensor& buffer : net_.buffers) {
    values_[buffer.name] = {builder_.statistic(buffer.name, {buffer.shape, buffer.dtype}),
                            plain_order(buffer.shape.rank())};
    note(buffer.name, {});
  }
  for (const NetTensor& constant : net_.constants) {
    values_[constant.name] = {builder_.statistic(constant.name, {constant.shape, constant.dtype}),
                              plain_order(constant.shape.rank())};
    note(constant.name, {}, {}, true);
    fixed_.insert(constant.name);
  }
  model_.foreign = std::move(names);
  model_.first_values = net_.weights;
}

void Lowering::lower(const NetNode& node) {
  const std::string where = node.at.empty() ? "" : " (" + node.at + ")";
  const LoweringRule* const rule = find_rule(node.op);
  const bool of_broken =
      std::ranges::any_of(node.in, [&](const Operand& in) { return is_broken(in.value); });
  if (of_broken) std::ranges::for_each(node.out, [&](const auto& out) { mark_broken(out); });
  origins_.emplace_back(graph().nodes.size(), node.op + where);
  for (const std::string& out : node.out) made_[out] = {node.op, node.in};
  try {
    if (const auto applied = applied_.find(node.out[0]); applied != applied_.end()) {
      values_[node.out[0]] = values_.at(applied->second);
      return;
    }
    user_check(rule != nullptr, "there is no such op here");
    rule->lower(*this, node);
    for (size_t k = 0; k < node.out.size(); ++k) {
      const auto made = values_.find(node.out[k]);
      user_check(made != values_.end(), "it makes {} results, not {}", k, node.out.size());
      if (node.shapes.empty()) continue;
      const Shape shape = shape_of(builder_, made->second), said = stated(node, k);
      user_check(shape == said || (shape.elements() == 1 && said.elements() == 1),
                 "it makes {}, and the file says {}", to_string(shape), to_string(said));
    }
  } catch (const UserError& fault) {
    // A stand-in may be of another shape or dtype, so what is wrong with its readers may be its
    // fault.
    if (!of_broken || rule == nullptr) {
      add_fault(fmt::format("{}: {}{}", node.op, fault.what(), where));
    }
    // So that what follows is looked at too.
    for (size_t k = 0; k < node.out.size(); ++k) {
      mark_broken(node.out[k]);
      Shape shape;
      try {
        if (!node.shapes.empty()) shape = stated(node, k);
      } catch (const UserError&) {  // beyond any memory: said above
      }
      values_[node.out[k]] = {builder_.constant(0, {shape, options_.storage}),
                              plain_order(shape.rank())};
    }
  }
}

PermutedTensor Lowering::in(const NetNode& node, size_t i) {
  user_check(has(node, i) && !node.in[i].number, "it has no input {}", i + 1);
  const auto found = values_.find(node.in[i].value);
  user_check(found != values_.end(), "it reads '{}', which is not there", node.in[i].value);
  PermutedTensor& read = found->second;
  if (late_.erase(found->first) > 0) read.value = stored(read.value);
  return read;
}

PermutedTensor Lowering::stored_in(const NetNode& node, size_t i) {
  PermutedTensor x = in(node, i);
  x.value = node.attrs.has("whole") ? in_dtype(x.value, DType::f32) : stored(x.value);
  return x;
}

ValueId Lowering::numbers_in(const NetNode& node, size_t i) {
  const ValueId value = plain_in(node, i);
  return is_floating(builder_.type(value).dtype) ? builder_.op("whole", {value}) : value;
}

ValueId Lowering::scale_in(const NetNode& node, size_t i, double otherwise, int64_t channels) {
  if (!has(node, i)) return builder_.constant(otherwise, {{channels}, DType::f32});
  const ValueId value = in_dtype(plain_in(node, i), DType::f32);
  user_check(builder_.type(value).elements() == channels, "its scales are {}, not of {} channels",
             to_string(builder_.type(value)), channels);
  return reshaped(builder_, value, {channels});
}

Shape Lowering::stated(const NetNode& node, size_t k) const {
  return shape_for(node.shapes.at(k), rows());
}

const Lowering::Made* Lowering::maker_of(const std::string& name) const {
  const auto found = made_.find(name);
  return found == made_.end() ? nullptr : &found->second;
}

const Lowering::Mean* Lowering::mean_of(const std::string& name) const {
  const auto found = means_.find(name);
  return found == means_.end() ? nullptr : &found->second;
}

std::vector<ValueId> Lowering::fed() const {
  std::vector<ValueId> values;
  for (const Feed& feed : model_.feeds) values.push_back(feed.value);
  return values;
}

std::string Lowering::origin_of(NodeId node) const {
  const auto next =
      std::ranges::upper_bound(origins_, node.at(), {}, &std::pair<size_t, std::string>::first);
  return next == origins_.begin() ? "" : std::prev(next)->second;
}

bool Lowering::is_fed(const std::string& name) const {
  const Made* made = maker_of(name);
  if (made == nullptr) {
    return std::ranges::find(model_.feeds, name, &Feed::field) != model_.feeds.end();
  }
  const bool moves = only_moves(made->op) || made->op == "cast";
  return moves && !made->in.empty() && is_fed(made->in[0].value);
}

void Lowering::set(const NetNode& node, PermutedTensor result, size_t k) {
  user_check(k < node.out.size(), "it makes more than {} results", node.out.size());
  values_[node.out[k]] = std::move(result);
}

void Lowering::set_plain(const NetNode& node, ValueId value, size_t k) {
  set(node, {value, plain_order(builder_.shape(value).rank())}, k);
}

std::string Lowering::fused_activation(const NetNode& node,
                                       std::span<const std::string_view> known) {
  const auto readers = readers_.find(node.out[0]);
  if (readers == readers_.end() || readers->second.size() != 1 ||
      readers->second[0] >= net_.nodes.size()) {
    return "none";
  }
  const NetNode& reader = net_.nodes[readers->second[0]];
  if (std::ranges::find(known, reader.op) == known.end() || reader.out.size() != 1) return "none";
  if (reader.in.size() != 1) return "none";
  applied_[reader.out[0]] = node.out[0];
  return reader.op;
}

ValueId Lowering::rng() {
  if (!model_.rng.valid()) model_.rng = builder_.input("rng", {{3}, DType::i64});
  return model_.rng;
}

ValueId Lowering::share_of_rows() {
  const auto rows_at_hand = static_cast<double>(rows());
  return builder_.op("scale", {loss_normalizer()}, {{"factor", rows_at_hand}});
}

ValueId Lowering::loss_normalizer() {
  if (!model_.loss_normalizer.valid()) {
    model_.loss_normalizer = builder_.input("normalizer", {{1}, DType::f32});
  }
  return model_.loss_normalizer;
}

}  // namespace thimble
